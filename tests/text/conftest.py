"""Small texts that the tests of this folder share."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("text", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)
settings.load_profile("text")


@pytest.fixture(scope="session")
def titles() -> list[str]:
    """Plain English titles with repeats, punctuation, an empty one and one without words."""
    return [
        "A history of algebra, and of the algebra of logic",
        "The history of the Roman Empire",
        "Fungi of the northern forests: a field guide",
        "Forest fungi",
        "Logic, algebra and geometry",
        "A field guide to the birds of the northern forests",
        "",
        "?! ... --",
        "Roman roads; Roman walls; Roman baths",
        "snake_case words and 1984",
        "The birds",
    ] * 3


SCRIPTS = [
    "Straße ﬁne №5 Ⅻ",
    "नमस्ते दुनिया नमस्ते",
    "العربية لغة جميلة",
    "日本語の本 図書館",
    "Ελληνικός ΣΊΣΥΦΟΣ",
    "Cafe\u0301 café CAFÉ",
    "İstanbul ılık",
    "한국어 책",
    "👩‍🚀 in space 👍🏽",
    "x\u0085y\u00a0z\u3000w\u2028v\u200bu\x1ct",
    "a \u0301b \u0300 c",
]


@pytest.fixture(scope="session")
def many_scripts() -> list[str]:
    """Texts that strain Unicode handling."""
    return SCRIPTS * 2

import tomllib
from dataclasses import dataclass, fields
from importlib import resources
from typing import Literal

import pytest

from deepxc.errors import UserError
from deepxc.systems import presets
from deepxc.systems.estimator import SYSTEMS
from deepxc.systems.nearest import NearestLabels, NearestSettings


@dataclass(frozen=True)
class Oven:
    heat: float
    tray: Literal["top", "bottom"]
    minutes: int | None
    fan: bool


@pytest.fixture
def oven(monkeypatch):
    table = {"fast": {n: {"value": v} for n, v in {"heat": 200.0, "tray": "top", "minutes": 10, "fan": True}.items()}}
    table["slow"] = {"base": {"value": "fast"}, "heat": {"value": 120.0}}
    monkeypatch.setattr(presets, "presets_of", lambda _: table)


@pytest.mark.usefixtures("oven")
class TestResolve:
    def test_the_preset_fills_what_was_not_given(self):
        assert presets.resolve(Oven, "oven", "fast", {"heat": None, "tray": "bottom"}) == Oven(200, "bottom", 10, True)

    def test_a_preset_builds_on_its_base(self):
        assert presets.resolve(Oven, "oven", "slow", {}) == Oven(120, "top", 10, True)

    def test_whole_numbers_pass_for_fractions(self):
        assert isinstance(presets.resolve(Oven, "oven", "fast", {"heat": 180}).heat, float)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"heet": 1}, "Did you mean 'heat'"),
            ({"tray": "middle"}, "'top' or 'bottom'"),
            ({"minutes": 1.5}, "whole number or none"),
            ({"minutes": True}, "whole number"),
            ({"fan": 1}, "true or false"),
            ({"heat": "hot"}, "number"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, given, message):
        with pytest.raises(UserError, match=message):
            presets.resolve(Oven, "oven", "fast", given)

    def test_an_unknown_preset_is_refused(self):
        with pytest.raises(UserError, match="Choose one of fast, slow"):
            presets.resolve(Oven, "oven", "quick", {})


def test_every_shipped_value_has_a_source_and_every_setting_a_value():
    for file in (resources.files("deepxc.systems")).iterdir():
        if not file.name.endswith(".toml"):
            continue
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        assert "fast" in table
        for preset in table.values():
            for entry in preset.values():
                assert set(entry) == {"value", "source"}
                assert len(entry["source"]) > 10


def test_presets_of_nearest_are_complete():
    for preset in ("fast", "best"):
        settings = presets.resolve(NearestSettings, "nearest", preset, {})
        assert isinstance(settings, NearestSettings)
    names = {field.name for field in fields(NearestSettings)}
    assert names <= set(NearestLabels().get_params())


def test_every_system_is_where_the_registry_says():
    from importlib import import_module

    for name, home in SYSTEMS.items():
        assert getattr(import_module(home), name).__name__ == name

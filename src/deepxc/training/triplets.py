"""Hinge losses over triplets of a text, a label that it has and one that it has not, on the hardest of these only.

Both take the scores of a batch's texts against the labels of its pool and the cells that are true. A true cell never
counts as a negative, whoever brought the label into the pool.
"""

from __future__ import annotations

import torch

_NO_VIOLATION = -50.0  # logit of the weight of a negative that violates nothing, as in the published code


def sampled_positive_loss(
    scores: torch.Tensor,
    own: torch.Tensor,
    positive: torch.Tensor,
    *,
    margin: float = 0.3,
    hardest: int = 10,
    temperature: float = 0.1,
) -> torch.Tensor:
    """One positive a text against its hardest negatives (DEXA, equation 5, as the published code weighs it).

    The mean, over texts and their `hardest` negatives, of [negative - positive + margin]+ times the negative's weight:
    a softmax over the text's violating negatives, which carries gradient too. A label stands in one column however many
    texts it was sampled for, where the published code repeats it.

    Args:
        scores: Texts x labels, differentiable.
        own: The column of each text's positive.
        positive: True where the label is one of the text's, sampled or not; texts x labels.
        margin: By how much a positive should be ahead.
        hardest: Negatives of a text that count.
        temperature: Of the weights.
    """
    ahead = scores.gather(1, own[:, None])
    negatives = scores.masked_fill(positive, -torch.inf).topk(min(hardest, scores.shape[1]), dim=1).values
    hinge = torch.relu(negatives - ahead + margin)
    logits = torch.where(hinge > 0, negatives, _NO_VIOLATION)
    return (hinge * torch.softmax(logits / temperature, dim=1)).mean()


def hardest_pairs_loss(
    scores: torch.Tensor,
    positive: torch.Tensor,
    *,
    margin: float = 0.2,
    positives: int = 3,
    negatives: int = 5,
) -> torch.Tensor:
    """A text's hardest positives against its hardest negatives (DEXA, equation 6, as the published code weighs it).

    The mean, over texts and pairs, of the hinge times its own softmax over the text's pairs. Texts with fewer positives
    or negatives have fewer pairs; the mean counts the places all the same.

    Args:
        scores: Texts x labels, differentiable.
        positive: True where the label is one of the text's.
        margin: By how much a positive should be ahead.
        positives: Positives of a text that count: those of the lowest scores.
        negatives: Negatives of a text that count: those of the highest.
    """
    width = scores.shape[1]
    low = scores.masked_fill(~positive, torch.inf).topk(min(positives, width), dim=1, largest=False).values
    high = scores.masked_fill(positive, -torch.inf).topk(min(negatives, width), dim=1).values
    gaps = (high[:, None, :] - low[:, :, None] + margin).flatten(1)
    real = torch.isfinite(gaps)
    hinge = torch.relu(gaps.masked_fill(~real, 0.0)) * real
    weights = torch.softmax(hinge.masked_fill(~real, _NO_VIOLATION), dim=1)
    return (hinge * weights).mean()


def in_batch_loss(scores: torch.Tensor, own: torch.Tensor, positive: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of each text's positive among the labels of the batch that are not its own otherwise (DPR)."""
    other = positive.clone()
    other.scatter_(1, own[:, None], value=False)
    return torch.nn.functional.cross_entropy(scores.masked_fill(other, -torch.inf), own)

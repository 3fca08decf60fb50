"""InceptionXML's embedding enhancement: words attend to words, dimensions to dimensions (section 4.1 of its paper).

Attention is the plain one that the paper cites: products of queries and keys weigh the values without a softmax, and a
learned number decides how much of the result is added to the input. Without a softmax both attentions are products of
matrices, which may be multiplied in any order: the (dimensions x dimensions) array that the second one speaks of is
never made, since only the words' inner products G = E E' enter either of them.

Each attention treats what it attends over as a set: with the words in another order, the first one's rows come in that
order too; with the dimensions in another order, the second one's columns. (The weights stand on the other side than
in the published code, whose word attention mixes words by their place; there are as many of them.)
"""

from __future__ import annotations

import torch


class EmbeddingEnhancement(torch.nn.Module):
    """Words (rows, length, dim) to enhanced dimensions (rows, dim, channels).

    Args:
        dim: Dimensions of a word vector.
        length: Words of a text, those that are missing being zero.
        channels: Numbers that each dimension is projected to.
        attention: Let words and dimensions attend before the projection.
    """

    def __init__(self, dim: int, length: int, channels: int, *, attention: bool = True) -> None:
        super().__init__()
        self.dim, self.length, self.attention = dim, length, attention
        self.projection = torch.nn.Linear(length, channels)
        if attention:
            self.of_words = torch.nn.Parameter(torch.empty(dim, dim))
            self.of_dimensions = torch.nn.Parameter(torch.empty(length, length))
            self.amounts = torch.nn.Parameter(torch.empty(2))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start anew: values are the words themselves, and a tenth of what attention finds is added."""
        self.projection.reset_parameters()
        if self.attention:
            torch.nn.init.eye_(self.of_words)
            torch.nn.init.eye_(self.of_dimensions)
            torch.nn.init.constant_(self.amounts, 0.1)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Each dimension's projection: that of `attend_dimensions(attend_words(words))`, in fewer products."""
        kind = words.dtype
        onto = self.projection.weight.T.to(kind)  # length x channels
        bias = self.projection.bias.to(kind)
        if not self.attention:
            return words.transpose(1, 2) @ onto + bias
        of_words, of_dimensions = (amount.to(kind) for amount in self.amounts)
        gram = self._gram(words)
        # The second attention and the projection of one text: what each of its words adds to each channel.
        onto = onto + of_dimensions * (gram @ (self.of_dimensions.to(kind) @ onto))
        values = words @ self.of_words.to(kind)
        both = torch.cat((words, values), dim=1).transpose(1, 2)
        return torch.baddbmm(bias, both, torch.cat((onto, of_words * (gram @ onto)), dim=1))

    def attend_words(self, words: torch.Tensor) -> torch.Tensor:
        """E + a G E W: every word gets some of the words that are like it."""
        return words + self.amounts[0] * (self._gram(words) @ (words @ self.of_words))

    def attend_dimensions(self, attended: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """(X' + a (X' E) (E' W))': dimensions that go together in the text's words get some of each other."""
        queries, keys = attended.transpose(1, 2), words.transpose(1, 2)
        weights = (queries @ words) * self.dim**-0.5
        return (queries + self.amounts[1] * (weights @ (keys @ self.of_dimensions))).transpose(1, 2)

    def _gram(self, words: torch.Tensor) -> torch.Tensor:
        return torch.bmm(words, words.transpose(1, 2)) * self.dim**-0.5

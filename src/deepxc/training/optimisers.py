"""One optimiser for a whole learner: its small parameters by PyTorch's Adam, its tables row by row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

import torch

from deepxc.errors import UserError
from deepxc.modules.tables import RowTable
from deepxc.training.row_rules import RowAdagrad, RowAdam, RowRule, RowSGD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Rule = Literal["adam", "adagrad", "sgd"]
_ROW_RULES = {"adam": RowAdam, "adagrad": RowAdagrad, "sgd": RowSGD}
_DENSE_RULES = {"adam": torch.optim.Adam, "adagrad": torch.optim.Adagrad, "sgd": torch.optim.SGD}


@dataclass
class Group:
    """Tables and parameters that share a learning rate and a rule.

    Attributes:
        rate: Learning rate, before the schedule.
        tables: Tables, moved row by row.
        parameters: Parameters with dense gradients.
        rule: `adam`, `adagrad` or `sgd`.
        row_options: Options of the tables' rule: see `RowAdam` and `RowAdagrad`.
        dense_options: Options of PyTorch's optimiser for the parameters.
    """

    rate: float
    tables: Sequence[RowTable] = ()
    parameters: Sequence[torch.nn.Parameter] = ()
    rule: Rule = "adam"
    row_options: Mapping[str, Any] = field(default_factory=dict)
    dense_options: Mapping[str, Any] = field(default_factory=dict)


class Optimiser:
    """Moves every group by its rule and rate; nothing may be in two groups."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups = list(groups)
        members = [id(member) for group in groups for member in (*group.tables, *group.parameters)]
        if len(set(members)) < len(members):
            raise UserError("a table or parameter is in two groups", where="groups", remedy="Put each into one group")
        self._rows: list[list[RowRule]] = [
            [_ROW_RULES[group.rule](table, **group.row_options) for table in group.tables] for group in groups
        ]
        self._dense = [
            _DENSE_RULES[group.rule](group.parameters, lr=group.rate, **group.dense_options)
            if group.parameters
            else None
            for group in groups
        ]

    @classmethod
    def of(cls, module: torch.nn.Module, rate: float, *, table_rate: float | None = None, rule: Rule = "adam") -> Self:
        """One rule for all that trains in a module.

        Args:
            module: Its trained `RowTable`s and parameters are found.
            rate: Learning rate of the parameters.
            table_rate: Learning rate of the tables; `rate` by default.
            rule: `adam`, `adagrad` or `sgd`.
        """
        tables = [part for part in module.modules() if isinstance(part, RowTable) and part.trained]
        parameters = [p for p in module.parameters() if p.requires_grad]
        table_rate = rate if table_rate is None else table_rate
        return cls([Group(table_rate, tables=tables, rule=rule), Group(rate, parameters=parameters, rule=rule)])

    def step(self, scale: float = 1.0) -> None:
        """Move everything that has a gradient, at its group's rate times `scale`, and forget the gradients."""
        for group, rows, dense in zip(self.groups, self._rows, self._dense, strict=True):
            for rule in rows:
                rule.step(group.rate * scale)
            if dense is not None:
                dense.param_groups[0]["lr"] = group.rate * scale
                dense.step()
                dense.zero_grad(set_to_none=True)

    def state(self) -> dict[str, torch.Tensor]:
        """Every tensor that a resumed training needs, by name, not copied."""
        tensors: dict[str, torch.Tensor] = {}
        for g, (rows, dense) in enumerate(zip(self._rows, self._dense, strict=True)):
            for i, rule in enumerate(rows):
                tensors |= {f"{g}.table.{i}.{name}": tensor for name, tensor in rule.state().items()}
            if dense is not None:
                for i, parts in dense.state_dict()["state"].items():
                    tensors |= {
                        f"{g}.parameter.{i}.{name}": part for name, part in parts.items() if torch.is_tensor(part)
                    }
        return tensors

    def load_state(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Take over what `state` gave."""
        for name, own in self.state().items():
            if ".table." in name:
                own.copy_(tensors[name])
        for g, dense in enumerate(self._dense):
            if dense is None:
                continue
            states: dict[int, dict[str, torch.Tensor]] = {}
            for name in tensors:
                group, kind, number, part = name.split(".", 3)
                if int(group) == g and kind == "parameter":
                    states.setdefault(int(number), {})[part] = tensors[name].clone()
            document = dense.state_dict()
            document["state"] = states
            dense.load_state_dict(document)

"""PromQL over two scrapes: the part of the language that the dashboard and the alert rules use.

An expression is parsed by Prometheus' own grammar (promql-parser). Rates and increases are those between the two
scrapes, without Prometheus' extrapolation to the ends of the range. `tests/interop/test_promql.py` asks Prometheus.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import promql_parser
from prometheus_client.parser import text_string_to_metric_families

__all__ = ["Labels", "Scrape", "evaluated", "matching", "selectors", "without_threshold"]

Labels: TypeAlias = frozenset[tuple[str, str]]
Vector: TypeAlias = dict[Labels, float]

_NAME: Final = "__name__"
_ARITHMETIC: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: a / b if b else math.nan if not a or math.isnan(a) else math.inf,
}
_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
_AGGREGATIONS: Final[Mapping[str, Callable[[Iterable[float]], float]]] = {
    "sum": sum,
    "max": max,
    "min": min,
    "count": lambda values: float(len(list(values))),
}


@dataclass(frozen=True, slots=True)
class Scrape:
    """What there was at a time (Unix seconds), by labels, the name of the metric among them."""

    time: float
    samples: Vector
    #: The samples of each metric, each with its labels by their names too: a query asks about a few of thousands.
    by_metric: dict[str, list[tuple[Labels, dict[str, str], float]]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        found: dict[str, list[tuple[Labels, dict[str, str], float]]] = {}
        for labels, value in self.samples.items():
            pairs = dict(labels)
            found.setdefault(pairs[_NAME], []).append((labels, pairs, value))
        object.__setattr__(self, "by_metric", found)

    @classmethod
    def of(cls, time: float, texts: Mapping[str, str]) -> Scrape:
        """The scrapes of several instances, each with the label that Prometheus adds, and ``up``."""
        samples: Vector = {}
        for instance, text in texts.items():
            target = {"instance": instance, "job": "broker-core"}
            samples[frozenset({_NAME: "up", **target}.items())] = 1.0
            for family in text_string_to_metric_families(text):
                for sample in family.samples:
                    labels = {_NAME: sample.name, **sample.labels, **target}
                    samples[frozenset(labels.items())] = sample.value
        return cls(time, samples)


def selectors(expression: Any) -> Iterator[Any]:
    """All vector selectors of an expression."""
    match type(expression).__name__:
        case "VectorSelector":
            yield expression
        case "MatrixSelector":
            yield expression.vector_selector
        case "Call":
            for argument in expression.args:
                yield from selectors(argument)
        case "BinaryExpr":
            yield from selectors(expression.lhs)
            yield from selectors(expression.rhs)
        case "AggregateExpr" | "ParenExpr":
            yield from selectors(expression.expr)
        case "NumberLiteral":
            return
        case other:
            raise NotImplementedError(other)


def without_threshold(expression: Any) -> Any:
    """What an alert compares with a number, of an expression that ends so."""
    if type(expression).__name__ == "BinaryExpr" and str(expression.op) in _COMPARISONS:
        return expression.lhs
    return expression


def matching(scrape: Scrape, selector: Any) -> Vector:
    """The samples that a vector selector selects."""
    return {
        labels: value
        for labels, pairs, value in scrape.by_metric.get(selector.name, ())
        if _matches(pairs, selector.matchers.matchers)
    }


def _matches(labels: dict[str, str], matchers: Iterable[Any]) -> bool:
    for each in matchers:
        value = labels.get(each.name, "")
        is_regex = each.op in (promql_parser.MatchOp.Re, promql_parser.MatchOp.NotRe)
        equal = re.fullmatch(each.value, value) is not None if is_regex else value == each.value
        if equal != (each.op in (promql_parser.MatchOp.Re, promql_parser.MatchOp.Equal)):
            return False
    return True


def evaluated(expression: Any, before: Scrape, now: Scrape) -> Vector | float:
    """The value of an expression at the time of the second scrape."""
    match type(expression).__name__:
        case "NumberLiteral":
            number: float = expression.val
            return number
        case "ParenExpr":
            return evaluated(expression.expr, before, now)
        case "VectorSelector":
            return matching(now, expression)
        case "Call":
            return _called(expression, before, now)
        case "AggregateExpr":
            return _aggregated(expression, _vector(evaluated(expression.expr, before, now)))
        case "BinaryExpr":
            left, right = (evaluated(side, before, now) for side in (expression.lhs, expression.rhs))
            assert expression.modifier is None, "one-to-one, by all labels"
            return _combined(str(expression.op), left, right)
        case other:
            raise NotImplementedError(other)


def _vector(value: Vector | float) -> Vector:
    assert isinstance(value, dict), "not a number"
    return value


def _called(call: Any, before: Scrape, now: Scrape) -> Vector | float:
    match call.func.name:
        case "time":
            return now.time
        case ("rate" | "increase") as name:
            (matrix,) = call.args
            former = matching(before, matrix.vector_selector)
            seconds = now.time - before.time if name == "rate" else 1.0
            return {
                _unnamed(labels): (value - former[labels]) / seconds
                for labels, value in matching(now, matrix.vector_selector).items()
                if labels in former
            }
        case "histogram_quantile":
            quantile, buckets = (evaluated(argument, before, now) for argument in call.args)
            assert isinstance(quantile, float)
            return _quantiles(quantile, _vector(buckets))
        case other:
            raise NotImplementedError(other)


def _unnamed(labels: Labels) -> Labels:
    return frozenset(pair for pair in labels if pair[0] != _NAME)


def _quantiles(quantile: float, buckets: Vector) -> Vector:
    groups: dict[Labels, list[tuple[float, float]]] = {}
    for labels, count in buckets.items():
        bound = dict(labels)["le"]
        rest = frozenset(pair for pair in labels if pair[0] != "le")
        groups.setdefault(rest, []).append((float(bound), count))
    found: Vector = {}
    for labels, counted in groups.items():
        counted.sort()
        assert math.isinf(counted[-1][0]), "the last bucket of a histogram is that of all"
        rank = quantile * counted[-1][1]
        place = next(index for index, (_, count) in enumerate(counted) if count >= rank)
        low, below = (0.0, 0.0) if place == 0 else counted[place - 1]
        high, count = counted[place]
        if counted[-1][1] == 0:
            found[labels] = math.nan
        elif math.isinf(high):
            found[labels] = low
        else:
            found[labels] = low + (high - low) * (rank - below) / (count - below) if count > below else high
    return found


def _aggregated(expression: Any, vector: Vector) -> Vector:
    modifier = expression.modifier
    assert modifier is None or modifier.type == promql_parser.AggModifierType.By
    kept = set() if modifier is None else set(modifier.labels)
    groups: dict[Labels, list[float]] = {}
    for labels, value in vector.items():
        groups.setdefault(frozenset(pair for pair in labels if pair[0] in kept), []).append(value)
    return {labels: _AGGREGATIONS[str(expression.op)](values) for labels, values in groups.items()}


def _combined(operation: str, left: Vector | float, right: Vector | float) -> Vector | float:
    if isinstance(left, float) and isinstance(right, float):
        return _ARITHMETIC[operation](left, right)
    pairs: Iterator[tuple[Labels, float, float]]
    if isinstance(left, float):
        pairs = ((labels, left, value) for labels, value in _vector(right).items())
    elif isinstance(right, float):
        pairs = ((labels, value, right) for labels, value in left.items())
    else:
        others = {_unnamed(labels): value for labels, value in right.items()}
        pairs = (
            (labels, value, others[_unnamed(labels)])
            for labels, value in left.items()
            if _unnamed(labels) in others
        )
    if operation in _COMPARISONS:
        return {labels: a for labels, a, b in pairs if _COMPARISONS[operation](a, b)}
    return {_unnamed(labels): _ARITHMETIC[operation](a, b) for labels, a, b in pairs}

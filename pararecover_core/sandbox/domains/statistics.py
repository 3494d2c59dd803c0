"""Statistics: data sets, columns of numbers, means, trends."""

import statistics as stats
from typing import Annotated, TypedDict

from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.kinds import Count, Percent, Text, choice_kind, list_kind, number_kind
from pararecover_core.sandbox.registry import NotFoundError, tool

DataSet = Annotated[
    str,
    choice_kind(
        "data_set",
        "the data set",
        ("bike counts", "river levels", "ticket sales", "bee hives", "bus delays", "coffee prices"),
    ),
]
Series = Annotated[list[float], list_kind("series", "the series", float)]
Number = Annotated[float, number_kind("number", "the number", -1e9, 1e9, sample=(10, 90))]


class Column(TypedDict):
    """A column of numbers."""

    series: Series
    row_count: Count


class Mean(TypedDict):
    """A mean."""

    mean: Number


class Median(TypedDict):
    """A median."""

    median: Number


class Spread(TypedDict):
    """A standard deviation."""

    standard_deviation: Number


class Cleaned(TypedDict):
    """A series without outliers."""

    cleaned_series: Series


class Sorted(TypedDict):
    """A series in order."""

    sorted_series: Series


class Trend(TypedDict):
    """A slope."""

    slope: Number
    trend_text: Text


class Change(TypedDict):
    """A share."""

    share: Percent


class Largest(TypedDict):
    """The largest value."""

    largest_value: Number


@tool("load the {data_set} data", "get the numbers of the {data_set} data set", makes="the data")
def load_data(data_set: DataSet) -> Column:
    """Load a data set as a list of numbers.

    Args:
        data_set: Name of the data set.
    """
    draw = Draw("data", data_set)
    values = [draw.amount(5, 95, digits=1) for _ in range(draw.integer(6, 12))]
    return {"series": values, "row_count": len(values)}


@tool("load last year's {data_set} data", makes="the data")
def load_archived_data(data_set: DataSet) -> Column:
    """Load last year's numbers of a data set.

    Args:
        data_set: Name of the data set.
    """
    draw = Draw("archived data", data_set)
    values = [draw.amount(5, 95, digits=1) for _ in range(draw.integer(6, 12))]
    return {"series": values, "row_count": len(values)}


@tool("take the mean of {series}", makes="the mean")
def mean_of(series: Series) -> Mean:
    """Take the arithmetic mean.

    Args:
        series: Numbers.
    """
    return {"mean": round(stats.fmean(series), 3)}


@tool("take the median of {series}", makes="the median")
def median_of(series: Series) -> Median:
    """Take the median.

    Args:
        series: Numbers.
    """
    return {"median": round(stats.median(series), 3)}


@tool("compute the standard deviation of {series}", makes="the spread")
def standard_deviation_of(series: Series) -> Spread:
    """Compute the sample standard deviation.

    Args:
        series: At least two numbers.
    """
    if len(series) < 2:
        raise NotFoundError("one number has no standard deviation.")
    return {"standard_deviation": round(stats.stdev(series), 3)}


@tool("drop the outliers from {series}", makes="the cleaned data")
def drop_outliers(series: Series) -> Cleaned:
    """Drop the smallest and the largest value.

    Args:
        series: At least four numbers.
    """
    if len(series) < 4:
        raise NotFoundError("fewer than four numbers have no outliers.")
    kept = list(series)
    kept.remove(max(kept))
    kept.remove(min(kept))
    return {"cleaned_series": kept}


@tool("sort {series} in falling order", makes="the sorted data")
def sort_series(series: Series) -> Sorted:
    """Sort numbers from the largest to the smallest.

    Args:
        series: Numbers.
    """
    return {"sorted_series": sorted(series, reverse=True)}


@tool("fit a trend line to {series}", makes="the trend")
def fit_trend(series: Series) -> Trend:
    """Fit a straight line by least squares.

    Args:
        series: At least two numbers.
    """
    if len(series) < 2:
        raise NotFoundError("one number has no trend.")
    slope = round(stats.linear_regression(range(len(series)), series).slope, 3)
    return {
        "slope": slope,
        "trend_text": f"It {'rises' if slope > 0 else 'falls'} by {abs(slope)}.",
    }


@tool("find the largest value of {series}", makes="the maximum")
def largest_of(series: Series) -> Largest:
    """Find the largest number.

    Args:
        series: Numbers.
    """
    return {"largest_value": max(series)}


@tool("work out how many percent {part} is of {whole}", makes="the share")
def percent_of(part: Number, whole: Number) -> Change:
    """Express a part as percent of a whole, at most 100.

    Args:
        part: Part.
        whole: Whole, not zero.
    """
    if not whole:
        raise NotFoundError("a share of zero is not defined.")
    return {"share": min(100.0, max(0.1, round(abs(part / whole) * 100, 1)))}

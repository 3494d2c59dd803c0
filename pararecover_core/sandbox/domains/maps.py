"""Maps: distances, routes, places, elevation."""

import math
from typing import Annotated, TypedDict

from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.kinds import (
    CITIES,
    City,
    Count,
    Kilometres,
    Minutes,
    Money,
    Text,
    choice_kind,
    id_kind,
    number_kind,
)
from pararecover_core.sandbox.registry import NotFoundError, tool

PlaceType = Annotated[
    str,
    choice_kind(
        "place_type",
        "the type of place",
        ("museum", "pharmacy", "bakery", "library", "swimming pool", "bike shop", "market"),
    ),
]
PlaceId = Annotated[str, id_kind("place_id", "the place", "PL")]
Mode = Annotated[str, choice_kind("mode", "the mode", ("car", "bicycle", "bus"))]
Metres = Annotated[float, number_kind("metres", "the height", 0, 9000)]


class Distance(TypedDict):
    """A distance."""

    distance: Kilometres


class Route(TypedDict):
    """A way from one city to another."""

    route_length: Kilometres
    travel_time: Minutes


class Place(TypedDict):
    """A place that was found."""

    place_id: PlaceId
    walking_time: Minutes


class PlaceDetails(TypedDict):
    """What is known of a place."""

    entry_fee: Money
    opening_hours: Text


class Nearest(TypedDict):
    """The nearest city."""

    nearest_city: City


class Height(TypedDict):
    """A height above the sea."""

    elevation: Metres


class Fuel(TypedDict):
    """What a drive costs."""

    fuel_cost: Money


class Duration(TypedDict):
    """How long it takes."""

    driving_time: Minutes


class Parking(TypedDict):
    """Parking near a place."""

    free_spaces: Count
    parking_fee: Money


def _kilometres(start: str, end: str) -> float:
    """Great-circle distance of two cities."""
    (lat1, lon1), (lat2, lon2) = CITIES[start], CITIES[end]
    a, b, d = map(math.radians, (lat1, lat2, lon2 - lon1))
    cosine = math.sin(a) * math.sin(b) + math.cos(a) * math.cos(b) * math.cos(d)
    return round(6371 * math.acos(min(1.0, cosine)), 1)


@tool("measure the distance as the crow flies from {start} to {end}", makes="the straight line")
def straight_distance(start: City, end: City) -> Distance:
    """Measure the great-circle distance of two cities.

    Args:
        start: First city.
        end: Second city.
    """
    if start == end:
        raise NotFoundError(f"{start} lies at no distance from itself.")
    return {"distance": _kilometres(start, end)}


@tool("plan a route from {start} to {end} by {mode}", makes="the route")
def plan_route(start: City, end: City, mode: Mode) -> Route:
    """Plan a route between two cities.

    Args:
        start: Where it begins.
        end: Where it ends.
        mode: Means of transport.
    """
    if start == end:
        raise NotFoundError(f"no route leads from {start} to itself.")
    length = round(_kilometres(start, end) * 1.23, 1)
    speed = {"car": 82, "bicycle": 17, "bus": 61}[mode]
    return {"route_length": length, "travel_time": min(20_000, round(length / speed * 60))}


@tool("find a {place_type} in {city}", makes="the place")
def find_place(place_type: PlaceType, city: City) -> Place:
    """Find a place of a type near the centre of a city.

    Args:
        place_type: What to look for.
        city: Where to look.
    """
    draw = Draw("place", place_type, city)
    return {"place_id": draw.id("PL"), "walking_time": draw.integer(2, 45)}


@tool("find the best rated {place_type} in {city}", makes="the place")
def find_top_place(place_type: PlaceType, city: City) -> Place:
    """Find the best rated place of a type, however far from the centre.

    Args:
        place_type: What to look for.
        city: Where to look.
    """
    draw = Draw("top place", place_type, city)
    return {"place_id": draw.id("PL"), "walking_time": draw.integer(5, 90)}


@tool("get entry fee and opening hours of {place_id}", makes="the place details")
def get_place_details(place_id: PlaceId) -> PlaceDetails:
    """Tell entry fee and opening hours of a place.

    Args:
        place_id: Identifier of the place.
    """
    draw = Draw("place details", place_id)
    hours = f"Open from {draw.integer(8, 11)} to {draw.integer(16, 22)}."
    return {"entry_fee": draw.amount(2, 28), "opening_hours": hours}


@tool("check the parking near {place_id}", makes="the parking")
def find_parking(place_id: PlaceId) -> Parking:
    """Tell free parking spaces and their price for a day.

    Args:
        place_id: Identifier of the place.
    """
    draw = Draw("parking", place_id)
    return {"free_spaces": draw.integer(1, 200), "parking_fee": draw.amount(1, 30)}


@tool("find the city nearest to {city}", makes="the nearest city")
def nearest_city(city: City) -> Nearest:
    """Find the nearest other city on the map.

    Args:
        city: City.
    """
    others = (other for other in CITIES if other != city)
    return {"nearest_city": min(others, key=lambda other: _kilometres(city, other))}


@tool("look up the elevation of {city}", makes="the elevation")
def get_elevation(city: City) -> Height:
    """Tell a city's height above the sea in metres.

    Args:
        city: City.
    """
    return {"elevation": Draw("elevation", city).integer(1, 3200)}


@tool("work out the fuel cost of driving {distance}", makes="the fuel cost")
def estimate_fuel_cost(distance: Kilometres) -> Fuel:
    """Work out the fuel cost of a drive at 6.2 l per 100 km.

    Args:
        distance: Kilometres.
    """
    return {"fuel_cost": max(0.01, round(distance * 6.2 / 100 * 1.79, 2))}


@tool("work out the driving time for {distance}", makes="the drive")
def driving_time(distance: Kilometres) -> Duration:
    """Work out the driving time at 82 km/h.

    Args:
        distance: Kilometres.
    """
    return {"driving_time": min(20_000, max(1, round(distance / 82 * 60)))}

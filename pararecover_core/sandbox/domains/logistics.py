"""Logistics: shipments, carriers, warehouses, customs."""

from typing import Annotated, TypedDict

from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.kinds import (
    City,
    Date,
    Kilograms,
    Kilometres,
    Money,
    Text,
    id_kind,
    number_kind,
)
from pararecover_core.sandbox.registry import NotFoundError, tool

ShipmentId = Annotated[str, id_kind("shipment_id", "the shipment", "SH")]
Pallets = Annotated[
    float, number_kind("pallets", "the pallets", 1, 10_000, sample=(2, 12), unit="pallets")
]
Emissions = Annotated[float, number_kind("emissions", "the emissions", 0.01, 10_000_000)]
WarehouseId = Annotated[str, id_kind("warehouse_id", "the warehouse", "WH")]


class Shipment(TypedDict):
    """A shipment."""

    shipment_id: ShipmentId
    freight_price: Money


class Tracking(TypedDict):
    """Where a shipment is."""

    current_city: City
    arrival_date: Date


class Warehouse(TypedDict):
    """A warehouse."""

    warehouse_id: WarehouseId
    free_pallets: Pallets


class Stored(TypedDict):
    """What storing costs."""

    storage_fee: Money


class Customs(TypedDict):
    """Customs duty."""

    customs_duty: Money
    customs_note: Text


class LorryEmissions(TypedDict):
    """Carbon dioxide."""

    emissions: Emissions


class PalletCount(TypedDict):
    """Pallets that are needed."""

    pallets: Pallets


@tool("send a load of {weight} by road from {origin} to {destination}", makes="the shipment")
def ship_by_road(origin: City, destination: City, weight: Kilograms) -> Shipment:
    """Book freight by lorry.

    Args:
        origin: City of departure.
        destination: City of arrival.
        weight: Kilograms.
    """
    if origin == destination:
        raise NotFoundError(f"no lorry goes from {origin} to itself.")
    draw = Draw("road", origin, destination, weight)
    return {"shipment_id": draw.id("SH"), "freight_price": draw.amount(40, 900)}


@tool("send a load of {weight} by rail from {origin} to {destination}", makes="the shipment")
def ship_by_rail(origin: City, destination: City, weight: Kilograms) -> Shipment:
    """Book freight by train.

    Args:
        origin: City of departure.
        destination: City of arrival.
        weight: Kilograms.
    """
    if origin == destination:
        raise NotFoundError(f"no train goes from {origin} to itself.")
    draw = Draw("rail", origin, destination, weight)
    return {"shipment_id": draw.id("SH"), "freight_price": draw.amount(25, 700)}


@tool("track {shipment_id}", makes="the tracking")
def track_shipment(shipment_id: ShipmentId) -> Tracking:
    """Tell where a shipment is and when it arrives.

    Args:
        shipment_id: Identifier of the shipment.
    """
    draw = Draw("track", shipment_id)
    cities = ("Lisbon", "Oslo", "Vienna", "Turin", "Porto", "Riga", "Ghent", "Leeds", "Tunis")
    return {"current_city": draw.choice(cities), "arrival_date": draw.date()}


@tool("find a warehouse in {city}", makes="the warehouse")
def find_warehouse(city: City) -> Warehouse:
    """Find a warehouse with free space.

    Args:
        city: City.
    """
    draw = Draw("warehouse", city)
    return {"warehouse_id": draw.id("WH"), "free_pallets": draw.integer(3, 400)}


@tool("ask what it costs to store {pallets} in {warehouse_id}", makes="the storage")
def storage_fee(warehouse_id: WarehouseId, pallets: Pallets) -> Stored:
    """Tell what storing pallets for a week costs.

    Args:
        warehouse_id: Identifier of the warehouse.
        pallets: Number of pallets.
    """
    return {"storage_fee": round(Draw("storage", warehouse_id).amount(1, 9) * pallets, 2)}


@tool("work out the customs duty on goods worth {value}", makes="the customs")
def customs_duty(value: Money) -> Customs:
    """Work out customs duty at 4.7 percent.

    Args:
        value: Value of the goods.
    """
    duty = max(0.01, round(value * 0.047, 2))
    return {"customs_duty": duty, "customs_note": f"Duty of {duty:.2f} is due on arrival."}


@tool("estimate the emissions of a lorry over {distance}", makes="the emissions")
def lorry_emissions(distance: Kilometres) -> LorryEmissions:
    """Estimate carbon dioxide at 0.9 kg a kilometre.

    Args:
        distance: Kilometres.
    """
    return {"emissions": max(0.01, round(distance * 0.9, 1))}


@tool("work out the pallets needed for a load of {weight}", makes="the pallet count")
def pallets_for(weight: Kilograms) -> PalletCount:
    """Work out pallets at 12 kg each.

    Args:
        weight: Kilograms.
    """
    return {"pallets": max(1, round(weight / 12))}

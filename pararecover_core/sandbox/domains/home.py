"""Smart home: devices, rooms, energy, schedules."""

from typing import Annotated, TypedDict

from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.kinds import (
    Celsius,
    Count,
    Minutes,
    Money,
    Percent,
    Text,
    Time,
    choice_kind,
    id_kind,
    number_kind,
)
from pararecover_core.sandbox.registry import tool

Room = Annotated[
    str,
    choice_kind(
        "room", "the room", ("kitchen", "bedroom", "study", "hallway", "greenhouse", "garage")
    ),
]
Device = Annotated[
    str,
    choice_kind(
        "device_type", "the device", ("thermostat", "lamp", "blind", "camera", "dehumidifier")
    ),
]
DeviceId = Annotated[str, id_kind("device_id", "the device", "DV")]
ScheduleId = Annotated[str, id_kind("schedule_id", "the schedule", "SC")]
KilowattHours = Annotated[
    float, number_kind("kilowatt_hours", "the energy", 0.01, 5000, sample=(1, 40), unit="kWh")
]


class Found(TypedDict):
    """A device."""

    device_id: DeviceId


class Reading(TypedDict):
    """What a device measures."""

    room_temperature: Celsius
    humidity: Percent


class Energy(TypedDict):
    """Energy that was used."""

    energy_used: KilowattHours
    running_minutes: Minutes


class Bill(TypedDict):
    """What energy costs."""

    energy_cost: Money


class Schedule(TypedDict):
    """A schedule."""

    schedule_id: ScheduleId
    next_start: Time


class Confirmation(TypedDict):
    """What was set."""

    confirmation: Text


class Battery(TypedDict):
    """How full a battery is."""

    battery_level: Percent


class Listed(TypedDict):
    """Devices in a room."""

    device_count: Count


@tool("find the {device_type} in the {room}", makes="the device")
def find_device(device_type: Device, room: Room) -> Found:
    """Find a device in a room.

    Args:
        device_type: Kind of device.
        room: Room.
    """
    return {"device_id": Draw("device", device_type, room).id("DV")}


@tool("count the devices in the {room}", makes="the device count")
def count_devices(room: Room) -> Listed:
    """Count the connected devices of a room.

    Args:
        room: Room.
    """
    return {"device_count": Draw("devices", room).integer(1, 14)}


@tool("read what {device_id} measures", makes="the reading")
def read_sensor(device_id: DeviceId) -> Reading:
    """Read temperature and humidity from a device.

    Args:
        device_id: Identifier of the device.
    """
    draw = Draw("sensor", device_id)
    return {"room_temperature": draw.integer(8, 31), "humidity": draw.integer(20, 90)}


@tool("check the battery of {device_id}", makes="the battery")
def check_battery(device_id: DeviceId) -> Battery:
    """Tell how full a device's battery is.

    Args:
        device_id: Identifier of the device.
    """
    return {"battery_level": Draw("battery", device_id).integer(3, 100)}


@tool("see how much energy {device_id} used this month", makes="the consumption")
def get_energy_use(device_id: DeviceId) -> Energy:
    """Tell the energy that a device used this month.

    Args:
        device_id: Identifier of the device.
    """
    draw = Draw("energy", device_id)
    return {
        "energy_used": draw.amount(0.5, 60, digits=1),
        "running_minutes": draw.integer(60, 9000),
    }


@tool("see how much energy {device_id} used last year", makes="the yearly consumption")
def get_yearly_energy_use(device_id: DeviceId) -> Energy:
    """Tell the energy that a device used last year.

    Args:
        device_id: Identifier of the device.
    """
    draw = Draw("yearly energy", device_id)
    return {
        "energy_used": draw.amount(8, 700, digits=1),
        "running_minutes": draw.integer(900, 19000),
    }


@tool("work out the power bill for {energy}", makes="the energy bill")
def energy_cost(energy: KilowattHours) -> Bill:
    """Work out the price of energy at 0.31 for a kilowatt-hour.

    Args:
        energy: Kilowatt-hours.
    """
    return {"energy_cost": max(0.01, round(energy * 0.31, 2))}


@tool("let {device_id} start every day at {start}", makes="the schedule")
def schedule_device(device_id: DeviceId, start: Time) -> Schedule:
    """Let a device start every day at a time.

    Args:
        device_id: Identifier of the device.
        start: Time, HH:MM.
    """
    return {"schedule_id": Draw("schedule", device_id, start).id("SC"), "next_start": start}


@tool("set {device_id} to {temperature}", makes="the setting")
def set_temperature(device_id: DeviceId, temperature: Celsius) -> Confirmation:
    """Set the target temperature of a device.

    Args:
        device_id: Identifier of the device.
        temperature: Degrees Celsius.
    """
    return {"confirmation": f"{device_id} is set to {temperature:g} degrees."}

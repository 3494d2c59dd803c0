"""Weather: forecasts, wind, sun, conversions."""

from typing import Annotated, TypedDict

from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.kinds import (
    Celsius,
    City,
    Count,
    Date,
    Minutes,
    Percent,
    Text,
    Time,
    number_kind,
)
from pararecover_core.sandbox.registry import tool

Wind = Annotated[float, number_kind("wind", "the wind speed", 0, 200, sample=(2, 60), unit="km/h")]
Fahrenheit = Annotated[float, number_kind("fahrenheit", "the temperature", -80, 140)]


class Forecast(TypedDict):
    """The weather of a day."""

    temperature: Celsius
    rain_chance: Percent
    wind_speed: Wind


class Sun(TypedDict):
    """Sunrise and sunset."""

    sunrise: Time
    sunset: Time
    daylight: Minutes


class InFahrenheit(TypedDict):
    """A temperature in degrees Fahrenheit."""

    fahrenheit: Fahrenheit


class Felt(TypedDict):
    """How cold it feels."""

    felt_temperature: Celsius


class Advice(TypedDict):
    """What to wear."""

    clothing_advice: Text


class Pollen(TypedDict):
    """Pollen in the air."""

    pollen_count: Count


class Average(TypedDict):
    """Past weather."""

    average_temperature: Celsius
    rainy_days: Count


class Tide(TypedDict):
    """High water."""

    high_tide: Time


@tool("get the weather forecast for {city} on {date}", "check the weather in {city} on {date}",
      makes="the forecast")  # fmt: skip
def get_forecast(city: City, date: Date) -> Forecast:
    """Forecast temperature, rain and wind of a day.

    Args:
        city: City.
        date: Day, YYYY-MM-DD.
    """
    draw = Draw("forecast", city, date)
    return {
        "temperature": draw.integer(-8, 36),
        "rain_chance": draw.integer(1, 95),
        "wind_speed": draw.integer(1, 70),
    }


@tool("look up the usual weather in {city} around {date}", makes="the usual weather")
def get_climate_average(city: City, date: Date) -> Average:
    """Tell the long-term average of a day, not its forecast.

    Args:
        city: City.
        date: Day, YYYY-MM-DD.
    """
    draw = Draw("climate", city, date[5:])
    return {"average_temperature": draw.integer(-5, 33), "rainy_days": draw.integer(1, 20)}


@tool("find out when the sun rises in {city} on {date}", makes="the sun times")
def get_sun_times(city: City, date: Date) -> Sun:
    """Tell sunrise, sunset and daylight of a day.

    Args:
        city: City.
        date: Day, YYYY-MM-DD.
    """
    draw = Draw("sun", city, date)
    rise, set_ = draw.integer(5 * 60, 9 * 60), draw.integer(16 * 60, 22 * 60)
    return {
        "sunrise": f"{rise // 60:02d}:{rise % 60:02d}",
        "sunset": f"{set_ // 60:02d}:{set_ % 60:02d}",
        "daylight": set_ - rise,
    }


@tool("check the pollen count in {city} on {date}", makes="the pollen report")
def get_pollen(city: City, date: Date) -> Pollen:
    """Tell grass pollen per cubic metre.

    Args:
        city: City.
        date: Day, YYYY-MM-DD.
    """
    return {"pollen_count": Draw("pollen", city, date).integer(1, 400)}


@tool("look up high tide in {city} on {date}", makes="the tide")
def get_tide(city: City, date: Date) -> Tide:
    """Tell the time of high water.

    Args:
        city: City by the sea.
        date: Day, YYYY-MM-DD.
    """
    return {"high_tide": Draw("tide", city, date).time()}


@tool("convert {temperature} to Fahrenheit", makes="the Fahrenheit value")
def celsius_to_fahrenheit(temperature: Celsius) -> InFahrenheit:
    """Convert degrees Celsius to degrees Fahrenheit.

    Args:
        temperature: Degrees Celsius.
    """
    return {"fahrenheit": round(temperature * 9 / 5 + 32, 1)}


@tool("work out how cold {temperature} feels with a wind of {wind_speed}",
      makes="the wind chill")  # fmt: skip
def wind_chill(temperature: Celsius, wind_speed: Wind) -> Felt:
    """Work out the felt temperature in wind.

    Args:
        temperature: Degrees Celsius.
        wind_speed: Wind in km/h.
    """
    felt = temperature - min(20.0, wind_speed**0.5)
    return {"felt_temperature": round(max(-60.0, felt), 1)}


@tool("suggest what to wear at {temperature}", makes="the clothing advice")
def suggest_clothing(temperature: Celsius) -> Advice:
    """Suggest clothing for a temperature.

    Args:
        temperature: Degrees Celsius.
    """
    layers = (("a winter coat and gloves", 3), ("a jacket", 14), ("a jumper", 20), ("a shirt", 99))
    return {"clothing_advice": f"Wear {next(wear for wear, top in layers if temperature < top)}."}

"""Recipes: search, scaling, nutrition, kitchen conversions."""

from typing import Annotated, TypedDict

from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.kinds import (
    Celsius,
    Count,
    Kilograms,
    Minutes,
    Money,
    Text,
    choice_kind,
    id_kind,
    list_kind,
    number_kind,
)
from pararecover_core.sandbox.registry import tool

_INGREDIENTS = ("lentils", "chickpeas", "aubergine", "salmon", "mushrooms", "buckwheat", "pumpkin",
                "spinach", "rye flour", "plums")  # fmt: skip
Ingredient = Annotated[str, choice_kind("ingredient", "the ingredient", _INGREDIENTS)]
Diet = Annotated[
    str, choice_kind("diet", "the diet", ("vegan", "vegetarian", "gluten-free", "low-salt"))
]
RecipeId = Annotated[str, id_kind("recipe_id", "the recipe", "RC")]
Ingredients = Annotated[list[str], list_kind("ingredient_list", "the ingredient list", str)]
Kilocalories = Annotated[
    float,
    number_kind("kilocalories", "the energy", 1, 20_000, sample=(150, 900), unit="kilocalories"),
]


class Recipe(TypedDict):
    """A recipe that was found."""

    recipe_id: RecipeId
    cooking_time: Minutes


class IngredientList(TypedDict):
    """What a recipe needs."""

    ingredient_list: Ingredients
    servings: Count


class Cost(TypedDict):
    """What ingredients cost."""

    ingredient_cost: Money


class Energy(TypedDict):
    """Energy of a portion."""

    portion_energy: Kilocalories


class Oven(TypedDict):
    """How to bake."""

    oven_temperature: Celsius
    baking_time: Minutes


class Weighed(TypedDict):
    """A weight."""

    total_weight: Kilograms


class Steps(TypedDict):
    """How to cook."""

    instructions: Text


class Substitute(TypedDict):
    """Something to use instead."""

    substitute: Ingredient


class Running(TypedDict):
    """Time to burn energy."""

    running_time: Minutes


@tool("find a {diet} recipe with {ingredient}", makes="the recipe")
def search_recipe(ingredient: Ingredient, diet: Diet) -> Recipe:
    """Find a recipe with an ingredient for a diet.

    Args:
        ingredient: Main ingredient.
        diet: Diet it must fit.
    """
    draw = Draw("recipe", ingredient, diet)
    return {"recipe_id": draw.id("RC"), "cooking_time": draw.integer(2, 18) * 5}


@tool("look up a traditional dish made of {ingredient}", makes="the recipe")
def search_traditional_dish(ingredient: Ingredient) -> Recipe:
    """Find a traditional dish, whatever the diet.

    Args:
        ingredient: Main ingredient.
    """
    draw = Draw("traditional", ingredient)
    return {"recipe_id": draw.id("RC"), "cooking_time": draw.integer(4, 30) * 5}


@tool("list the ingredients of {recipe_id}", makes="the ingredients")
def get_ingredients(recipe_id: RecipeId) -> IngredientList:
    """List ingredients and servings of a recipe.

    Args:
        recipe_id: Identifier of the recipe.
    """
    draw = Draw("ingredients", recipe_id)
    return {"ingredient_list": draw.sample(_INGREDIENTS, 4), "servings": draw.integer(2, 8)}


@tool("price {ingredient_list}", makes="the shopping price")
def price_ingredients(ingredient_list: Ingredients) -> Cost:
    """Add up what ingredients cost at the market.

    Args:
        ingredient_list: Names of ingredients.
    """
    cost = sum(Draw("price", item).amount(0.8, 6.5) for item in ingredient_list)
    return {"ingredient_cost": round(cost, 2)}


@tool("weigh {ingredient_list}", makes="the weight")
def weigh_ingredients(ingredient_list: Ingredients) -> Weighed:
    """Add up what ingredients weigh.

    Args:
        ingredient_list: Names of ingredients.
    """
    weight = sum(Draw("weight", item).amount(0.1, 0.9) for item in ingredient_list)
    return {"total_weight": round(weight, 2)}


@tool("work out the energy of a portion of {recipe_id}", makes="the nutrition")
def get_nutrition(recipe_id: RecipeId) -> Energy:
    """Tell the energy of a portion in kilocalories.

    Args:
        recipe_id: Identifier of the recipe.
    """
    return {"portion_energy": Draw("nutrition", recipe_id).integer(180, 980)}


@tool("get the oven settings for {recipe_id}", makes="the oven settings")
def get_oven_settings(recipe_id: RecipeId) -> Oven:
    """Tell oven temperature and baking time, keeping warm included.

    Args:
        recipe_id: Identifier of the recipe.
    """
    draw = Draw("oven", recipe_id)
    return {"oven_temperature": draw.integer(40, 60), "baking_time": draw.integer(3, 20) * 5}


@tool("write down how to cook {recipe_id}", makes="the cooking steps")
def get_cooking_steps(recipe_id: RecipeId) -> Steps:
    """Tell how to cook a recipe.

    Args:
        recipe_id: Identifier of the recipe.
    """
    draw = Draw("steps", recipe_id)
    verb, after = draw.choice(("Simmer", "Roast", "Steam")), draw.integer(10, 40)
    return {"instructions": f"Chop everything. {verb} it for {after} minutes. Season and serve."}


@tool("suggest something to use instead of {ingredient}", makes="the substitute")
def find_substitute(ingredient: Ingredient) -> Substitute:
    """Suggest another ingredient.

    Args:
        ingredient: What is missing.
    """
    others = [item for item in _INGREDIENTS if item != ingredient]
    return {"substitute": Draw("substitute", ingredient).choice(others)}


@tool("work out how long to run to burn {energy}", makes="the run")
def running_time_for(energy: Kilocalories) -> Running:
    """Tell the minutes of running that burn an energy.

    Args:
        energy: Kilocalories.
    """
    return {"running_time": max(1, round(energy / 11))}

"""Shopping: products, stock, carts, discounts, delivery."""

from typing import Annotated, TypedDict

from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.kinds import (
    City,
    Count,
    Date,
    Kilograms,
    Money,
    Percent,
    Rate,
    Text,
    choice_kind,
    id_kind,
    number_kind,
)
from pararecover_core.sandbox.registry import tool

Product = Annotated[
    str,
    choice_kind(
        "product",
        "the product",
        ("desk lamp", "rain jacket", "cast-iron pan", "bicycle helmet", "tea kettle", "tent",
         "office chair", "headphones", "garden hose", "sewing machine"),
    ),
]  # fmt: skip
Pieces = Annotated[
    float, number_kind("pieces", "the pieces", 1, 10_000, sample=(2, 12), unit="pieces")
]
ProductId = Annotated[str, id_kind("product_id", "the product", "PR")]
OrderId = Annotated[str, id_kind("order_id", "the order", "OR")]


class Found(TypedDict):
    """A product on sale."""

    product_id: ProductId
    unit_price: Money


class Stock(TypedDict):
    """Pieces in stock."""

    stock_level: Count
    unit_weight: Kilograms


class Order(TypedDict):
    """An order."""

    order_id: OrderId
    order_total: Money


class Delivery(TypedDict):
    """When an order comes."""

    delivery_date: Date
    delivery_fee: Money


class Discounted(TypedDict):
    """A reduced price."""

    discounted_price: Money


class Reviews(TypedDict):
    """What buyers say."""

    rating_percent: Percent
    review_summary: Text


class Invoice(TypedDict):
    """An invoice."""

    invoice_text: Text
    invoice_amount: Money


class Refund(TypedDict):
    """Money that goes back."""

    refund_amount: Money


@tool("find a {product} to buy", "search the shop for a {product}", makes="the product")
def search_product(product: Product) -> Found:
    """Find a product on sale in the web shop.

    Args:
        product: What to look for.
    """
    draw = Draw("product", product)
    return {"product_id": draw.id("PR"), "unit_price": draw.amount(12, 380)}


@tool("find a second-hand {product}", makes="the product")
def search_used_product(product: Product) -> Found:
    """Find a used product on the second-hand market.

    Args:
        product: What to look for.
    """
    draw = Draw("used product", product)
    return {"product_id": draw.id("PR"), "unit_price": draw.amount(4, 160)}


@tool("check the stock of {product_id}", makes="the stock")
def check_stock(product_id: ProductId) -> Stock:
    """Tell pieces in stock and the weight of one.

    Args:
        product_id: Identifier of the product.
    """
    draw = Draw("stock", product_id)
    return {"stock_level": draw.integer(1, 120), "unit_weight": draw.amount(0.2, 18, digits=1)}


@tool("read the reviews of {product_id}", makes="the reviews")
def get_reviews(product_id: ProductId) -> Reviews:
    """Sum up the reviews of a product.

    Args:
        product_id: Identifier of the product.
    """
    draw = Draw("reviews", product_id)
    word = draw.choice(("sturdy", "quiet", "a little small", "easy to clean", "well made"))
    return {"rating_percent": draw.integer(45, 98), "review_summary": f"Buyers call it {word}."}


@tool("order {quantity} of {product_id}", makes="the order")
def place_order(product_id: ProductId, quantity: Pieces) -> Order:
    """Order pieces of a product.

    Args:
        product_id: Identifier of the product.
        quantity: Number of pieces.
    """
    draw = Draw("order", product_id, quantity)
    return {"order_id": draw.id("OR"), "order_total": round(draw.amount(10, 90) * quantity, 2)}


@tool("see when {order_id} can be delivered to {city}", makes="the delivery")
def plan_delivery(order_id: OrderId, city: City) -> Delivery:
    """Plan the delivery of an order to a city.

    Args:
        order_id: Identifier of the order.
        city: Where it goes.
    """
    draw = Draw("delivery", order_id, city)
    return {"delivery_date": draw.date(), "delivery_fee": draw.amount(3, 25)}


@tool("take a discount of {percent} off {price}", makes="the discount")
def apply_discount(price: Money, percent: Rate) -> Discounted:
    """Reduce a price.

    Args:
        price: Price before.
        percent: Discount in percent.
    """
    return {"discounted_price": max(0.01, round(price * (100 - percent) / 100, 2))}


@tool("get the invoice for {order_id}", makes="the invoice")
def get_invoice(order_id: OrderId) -> Invoice:
    """Fetch the invoice of an order.

    Args:
        order_id: Identifier of the order.
    """
    amount = Draw("invoice", order_id).amount(15, 900)
    return {"invoice_text": f"Invoice for {order_id}: {amount:.2f}", "invoice_amount": amount}


@tool("ask for a refund of {order_id}", makes="the refund")
def request_refund(order_id: OrderId) -> Refund:
    """Ask for the money of an order back.

    Args:
        order_id: Identifier of the order.
    """
    return {"refund_amount": Draw("refund", order_id).amount(5, 400)}

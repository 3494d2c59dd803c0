import pytest

from pararecover_core.completions import Usage
from pararecover_core.errors import ConfigError
from pararecover_core.prices import Price, cost, price_of, prices


def test_cost_is_tokens_times_price_for_a_million():
    assert cost(Usage(2_000_000, 500_000), Price(2.5, 10.0)) == 2 * 2.5 + 0.5 * 10.0
    assert cost(Usage(), Price(2.5, 10.0)) == 0.0


def test_an_unknown_price_is_unknown_and_not_nought():
    assert price_of("my-own-model") is None
    assert cost(Usage(1000, 1000), None) is None


def test_a_vendor_before_the_name_is_passed_over():
    assert price_of("openai/gpt-4o-mini") == price_of("gpt-4o-mini") is not None


def test_every_price_is_positive_and_answers_cost_at_least_as_much_as_questions():
    assert all(0 < one.prompt <= one.completion for one in prices().values())


def test_an_own_table_goes_first(tmp_path, monkeypatch):
    path = tmp_path / "prices.json"
    path.write_text('{"mine": [1, 2], "gpt-4o": [0, 0]}')
    monkeypatch.setenv("PARARECOVER_PRICES", str(path))
    assert price_of("mine") == Price(1, 2)
    assert price_of("gpt-4o") == Price(0, 0)
    assert price_of("gpt-4o-mini") is not None


@pytest.mark.parametrize("text", ["{", '{"m": 1}', '{"m": ["a", "b"]}', "[]"])
def test_a_wrong_table_says_what_it_should_be(tmp_path, monkeypatch, text):
    path = tmp_path / "prices.json"
    path.write_text(text)
    monkeypatch.setenv("PARARECOVER_PRICES", str(path))
    with pytest.raises(ConfigError, match=r"prices.json: got .*, expected \{\"model\": \[prompt"):
        prices()

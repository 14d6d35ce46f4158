"""What a function gives by the compiled loops and by operators."""

from softsurv.soft.one_pass import operators_alone


def both_ways(function, *arguments):
    """What a function gives by the compiled loops and by operators."""
    with operators_alone():
        expected = function(*arguments)
    return function(*arguments), expected

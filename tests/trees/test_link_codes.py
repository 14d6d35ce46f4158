"""Codes of links: every link that families of the package have is known to the compiled loops."""

import softsurv.hazards as hazards
from softsurv.trees.link_codes import CODES


def test_every_link_of_the_package_has_a_code_of_its_own():
    links = {hazards.get_family(name).link.name for name in hazards.family_names()}
    assert set(CODES) >= links
    assert len(set(CODES.values())) == len(CODES)

"""The reference site of the recovery tests: random pages, special cases, and pages with all link forms."""

from functools import cache

from tests.recovery import link_forms, special_cases
from tests.recovery.random_pages import add_random_pages
from tests.recovery.site import HOST, ROOT, Held, Site, a, html, part

SEED = 7


@cache
def reference_site() -> Site:
    """Return the site, which is always the same."""
    special_cases.WINS.clear()
    site = Site()
    street_links = add_random_pages(site, SEED)
    special = (
        *special_cases.ranking_cases(site),
        *special_cases.spelling_cases(site),
        *special_cases.out_of_scope_cases(site),
    )
    others = (
        *link_forms.links(site),
        *link_forms.bodies(site),
        *link_forms.lists(site),
        *link_forms.shop(site),
        *link_forms.gallery(site),
    )
    special_cases.case(
        site, "/special/", "links to the special cases", ("a", 2010),
        special_cases.on("a", 2010, refs=special), special_cases.bad("c", 2013, 404),
    )  # fmt: skip
    # Below /street/, because its retries take some seconds, and few tests recover that folder.
    damaged = special_cases.case(
        site, "/street/damaged.html", "the last capture cannot be read", ("b", 2007),
        special_cases.on("a", 2012, damaged="lost"), special_cases.on("b", 2007),
    )  # fmt: skip
    front = (part("/img/crest.gif"), a("/special/", "/special/"), a(damaged), *others, *street_links)
    early = (part("/img/crest.gif"), a("/shop/"), *street_links[:3])
    site.add(
        HOST,
        Held("a", "20050601000000", ROOT, html("The town of 2005", *early), refs=early),
        Held("b", "20120601000000", f"http://www.{HOST}/", html("The town of 2012", *front), refs=front),
        Held("c", "20110601000000", f"{ROOT}index.html", html("The town of 2011", *front), refs=front),
        Held("c", "20150601000000", ROOT, b"for sale", status=302, location="http://parked.example/"),
        case="the front page",
        also=(f"{HOST}/index.html",),
    )
    special_cases.WINS[HOST] = ("b", 2012)
    special_cases.case(
        site, "/img/crest.gif", "an image", ("c", 2012), special_cases.on("c", 2012, b"GIF89a crest", mime="image/gif")
    )
    return site

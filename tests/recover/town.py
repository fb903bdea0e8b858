"""The whole lost site: its front page, its streets and its special quarters."""

from functools import cache

from tests.recover import forms, specials
from tests.recover.site import HOST, ROOT, Held, Site, a, html, part
from tests.recover.streets import streets

SEED = 7


@cache
def town() -> Site:
    """Return it; always the same."""
    specials.WINS.clear()
    site = Site()
    to_streets = streets(site, SEED)
    special = (*specials.versions(site), *specials.spellings(site), *specials.borders(site))
    others = (*forms.links(site), *forms.bodies(site), *forms.lists(site), *forms.shop(site), *forms.gallery(site))
    specials.case(
        site, "/special/", "leads to the special cases", ("a", 2010),
        specials.on("a", 2010, refs=special), specials.bad("c", 2013, 404),
    )  # fmt: skip
    # In a street, since whoever asks for it tries again for some seconds, and few tests ask for streets.
    damaged = specials.case(
        site, "/street/damaged.html", "the last capture cannot be read", ("b", 2007),
        specials.on("a", 2012, damaged="lost"), specials.on("b", 2007),
    )  # fmt: skip
    front = (part("/img/crest.gif"), a("/special/", "/special/"), a(damaged), *others, *to_streets)
    early = (part("/img/crest.gif"), a("/shop/"), *to_streets[:3])
    site.add(
        HOST,
        Held("a", "20050601000000", ROOT, html("The town of 2005", *early), refs=early),
        Held("b", "20120601000000", f"http://www.{HOST}/", html("The town of 2012", *front), refs=front),
        Held("c", "20110601000000", f"{ROOT}index.html", html("The town of 2011", *front), refs=front),
        Held("c", "20150601000000", ROOT, b"for sale", status=302, location="http://parked.example/"),
        case="the front page",
        also=(f"{HOST}/index.html",),
    )
    specials.WINS[HOST] = ("b", 2012)
    specials.case(
        site, "/img/crest.gif", "an image", ("c", 2012), specials.on("c", 2012, b"GIF89a crest", mime="image/gif")
    )
    return site

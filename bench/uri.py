"""Speed of URLs to SURTs, relative to `surt` in the same run: Python strings to Python strings, on one core."""

import random

from tests import real_data
from tests.external import surt as reference

from bench.measure import Report, best_of
from unlost import uri

URLS = 200_000


def sample_urls() -> tuple[list[str], str]:
    """Return the URLs to convert and where they are from."""
    rng = random.Random(1)  # noqa: S311  a bench, not a secret
    if real_data.DATA.is_dir():
        return rng.sample(real_data.urls(), URLS), "a seeded sample of both real URL lists"
    words = ["News", "index.html", "a", "archive", "2013", "page.aspx", "%7Efoo", "b-c"]
    made = [
        f"http://www.host{rng.randrange(5000)}.co.uk/" + "/".join(rng.choices(words, k=rng.randrange(6))) + "?b=2&a=1"
        for _ in range(URLS)
    ]
    return made, "made-up URLs, since the real lists are not here"


def main() -> None:
    """Measure and write the report."""
    urls, origin = sample_urls()
    # Valid URLs only, contiguous in memory in list order, as in the other process.
    urls = "\n".join(url for url in urls if isinstance(uri.surt_many([url])[0], str)).split("\n")
    report = Report("uri", "Addresses to SURTs, beside `surt`")
    report.line(f"{len(urls):,} URLs: {origin}. Start-up and reading are not counted, on either side; best of 3.")
    report.line("")
    theirs = min(reference.compute_surts(urls)[1] for _ in range(3))
    report.line("| | µs a URL | URLs a second |")
    report.line("|---|---|---|")
    rows = {"`surt`": theirs}
    rows["`unlost.uri.surt_many`"] = ours = best_of(3, lambda: uri.surt_many(urls))
    rows["`unlost.uri.surt`, one by one"] = best_of(3, lambda: [uri.surt(url) for url in urls])
    surts = [surt for surt in uri.surt_many(urls) if isinstance(surt, str)]
    rows["`unlost.uri.key_many`, of SURTs"] = best_of(3, lambda: uri.key_many(surts))
    policies = uri.KeyPolicies(uri.POLICIES)
    rows["`KeyPolicies.keys_many`, all 23"] = best_of(3, lambda: policies.keys_many(urls))
    for name, seconds in rows.items():
        report.line(f"| {name} | {seconds / len(urls) * 1e6:.2f} | {len(urls) / seconds:,.0f} |")
    report.line("")
    report.gate("times faster than `surt`", theirs / ours, at_least=20)
    report.finish()


if __name__ == "__main__":
    main()

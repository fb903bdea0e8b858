"""A malicious lost site: each of its pages attempts another attack.

A successful attack requests `/stolen/WHAT` or pages of the service.
"""

from tests.recovery.site import HOST, ROOT, Held, Site, a, html

STEAL = """
<script>
document.title = "script ran";
const tell = (what, value) => { new Image().src = "/stolen/" + what + "?" + encodeURIComponent(value); };
tell("script", "1");
try { tell("cookie", document.cookie); } catch (error) {}
fetch("/admin", { credentials: "include" }).then((answer) => answer.text()).then((text) => {
  if (text.includes("Administration")) tell("admin", "1");
}).catch(() => {});
if (navigator.serviceWorker) navigator.serviceWorker.register("worker.js").then(() => tell("worker", "1"), () => {});
</script>
"""
WORKER = "self.addEventListener('fetch', () => {});"
FORM = """
<form id="f" action="/stolen/form" method="post"><input name="a" value="b"><button id="send">Go</button></form>
<script>document.getElementById("f").submit();</script>
"""
# The first is made by a script, since URLs in markup are rewritten: it reads the page of the logged-in user.
FRAME = """
<script>
const frame = document.createElement("iframe");
frame.onload = () => {
  if (frame.contentDocument?.querySelector("form[action='/admin/logout']")) new Image().src = "/stolen/frame";
};
frame.src = "/admin";
document.body.append(frame);
</script>
<iframe src="/admin"></iframe><iframe src="/recover"></iframe><object data="/admin"></object><embed src="/admin">
"""
HOST_OF_OTHERS = """
<img src="//127.0.0.1:OTHER/stolen/host.png"><link rel="stylesheet" href="//127.0.0.1:OTHER/stolen/host.css">
<div style="background: url(//127.0.0.1:OTHER/stolen/host-style.png)">x</div>
<style>@import "//127.0.0.1:OTHER/stolen/host-import.css";</style>
<script src="//127.0.0.1:OTHER/stolen/host.js"></script>
<video poster="//127.0.0.1:OTHER/stolen/host-video.png"></video>
"""
REFRESH = '<meta http-equiv="refresh" content="0; url=http://127.0.0.1:OTHER/stolen/refresh">'
# The script is the last: if its service worker is registered, requests bypass the observer.
PAGES = {"form": FORM, "frame": FRAME, "host": HOST_OF_OTHERS, "refresh": REFRESH, "script": STEAL}


def hostile(other: int) -> Site:
    """Return the site. Its pages try to reach a foreign host at port `other`."""
    site = Site()
    links = [a(f"/{name}.html") for name in PAGES]
    site.add(HOST, Held("a", "20100101000000", ROOT, html("Harmless", *links), refs=tuple(links)))
    for name, body in PAGES.items():
        page = f"<!doctype html><title>{name}</title><p>page {name}</p>{body.replace('OTHER', str(other))}"
        site.add(f"{HOST}/{name}.html", Held("a", "20110101000000", f"{ROOT}{name}.html", page.encode()))
    worker = Held("a", "20110101000000", f"{ROOT}worker.js", WORKER.encode(), "text/javascript")
    site.add(f"{HOST}/worker.js", worker)
    return site

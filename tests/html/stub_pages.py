"""Redirect stubs as written by site generators and by hand; `{url}` is the target."""

JEKYLL = """\
<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>Redirecting&hellip;</title>
    <link rel="canonical" href="{url}">
    <script>location="{url}"</script>
    <meta http-equiv="refresh" content="0; url={url}">
    <meta name="robots" content="noindex">
  </head>
  <body>
    <h1>Redirecting&hellip;</h1>
    <a href="{url}">Follow this link if nothing happens.</a>
  </body>
</html>
"""

MKDOCS = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Redirecting...</title>
<link rel="canonical" href="{url}">
<script>var part=window.location.hash.substr(1);location.href="{url}"+(part?"#"+part:"")</script>
<meta http-equiv="refresh" content="0; url={url}">
</head>
<body>
You are being redirected to <a href="{url}">the new place</a>.
</body>
</html>
"""

HUGO = (
    '<!DOCTYPE html><html lang="en"><head><title>{url}</title><link rel="canonical" href="{url}">'
    '<meta name="robots" content="noindex"><meta charset="utf-8">'
    '<meta http-equiv="refresh" content="0; url={url}"></head></html>'
)

MOVED = """\
<HTML><HEAD><TITLE>This page has moved</TITLE>
<META HTTP-EQUIV="Refresh" CONTENT="5;URL={url}">
</HEAD><BODY BGCOLOR="#FFFFFF"><H1>This page has moved</H1>
<P>Our pages have a new home. You will be taken there in five seconds; if not, please click
<A HREF="{url}">here</A> and update your bookmarks.</P></BODY></HTML>
"""

SCRIPTED = """\
<html><head><title>Moved</title>
<script type="text/javascript">
  window.location.replace('{url}');
</script>
</head><body><p>Go to <a href="{url}">the new page</a>.</p></body></html>
"""

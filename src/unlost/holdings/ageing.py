"""How long what was made of an index can be believed without looking at what is new."""

REBUILD_AFTER_DAYS = 7
"""Days after which maps and filters are to be made anew; a filter that is older does not deny what a wildcard covers.

Measured by `make bench-ageing` on 362,957 links with real dates, over four days of 2012 and 2013: a week after
it was made, a map with a filter of 8 bits misses 1.8 % of the pages that are held by then and is right 99 times in 100;
after two weeks it is 98 times, after a month 96. That collection grew by 1.8 % in a week. One that grows more slowly
keeps for longer: what counts is the share that is new, since a filter knows none of it. docs/ageing.md has the table.
"""

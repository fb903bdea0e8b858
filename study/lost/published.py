"""Published figures of the dissertation: Tables 19, 20 and 21, and the surrounding text."""

ARCHIVES = {"archive": "IA", "broad": "Google", "fresh": "MSN", "patchy": "Yahoo"}
"""The real repository that each simulated one models."""

GIVEN_AT_ONCE = {"archive": 0.19, "broad": 0.44, "fresh": 0.30, "patchy": 0.07}
GIVEN_WEEKLY = {"archive": 0.229, "broad": 0.274, "fresh": 0.324, "patchy": 0.171}
REQUESTS_WEEKLY = {"archive": 127.2, "broad": 152.6, "fresh": 101.3, "patchy": 232.2}
EFFICIENCY_WEEKLY = {"archive": 0.38, "broad": 0.38, "fresh": 0.62, "patchy": 0.24}

POLICIES = {
    "recovered": {"naive": 0.714, "knowledgeable": 0.724, "exhaustive": 0.747},
    "added": {"naive": 0.081, "knowledgeable": 0.111, "exhaustive": 0.511},
    "requests": {"naive": 1711.7, "knowledgeable": 710.9, "exhaustive": 1587.5},
    "efficiency": {"naive": 0.16, "knowledgeable": 0.41, "exhaustive": 0.49},
    "efficiency without added": {"naive": 0.15, "knowledgeable": 0.37, "exhaustive": 0.22},
}
"""Means of Table 19, by category and policy."""

LEVELS = {
    "s1": (0.7761, 0.8164, 0.3266, 0.0, 2.0, 0.03),
    "s2": (0.7137, 0.7817, 0.2606, 0.0, 1.0, 0.03),
    "s3": (0.6250, 0.6796, 0.2726, 0.0, 1.0, 0.05),
    "s4": (0.4567, 0.4278, 0.2867, 0.0, 1.0, 0.06),
    "s5": (0.3901, 0.3477, 0.2764, 0.0, 1.0, 0.10),
}
"""Table 20: mean, median, deviation, least, most, and the share of sites that were perfect at least once."""

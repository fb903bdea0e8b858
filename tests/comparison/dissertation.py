"""Published results of website reconstructions, as printed in the dissertation that defined the measure."""

from typing import NamedTuple


class Site(NamedTuple):
    """A row of Table 16: original and recovered resources, in total and by group, and the difference vector.

    Attributes:
        percents: As printed, for total, HTML, images, other; None for empty groups.
    """

    name: str
    total: tuple[int, int]
    html: tuple[int, int]
    images: tuple[int, int]
    other: tuple[int, int]
    vector: tuple[float, float, float]
    percents: tuple[int, int | None, int | None, int | None]


# fmt: off
TABLE_16 = (
    Site("smoky.ccsd.k12.co.us", (63, 27), (20, 20), (23, 5), (20, 2), (.111, .571, .000), (43, 100, 22, 10)),
    Site("genesis427.com", (65, 53), (10, 10), (50, 40), (5, 3), (.662, .185, .000), (82, 100, 80, 60)),
    Site("englewood.k12.co.us", (68, 58), (32, 29), (36, 29), (0, 0), (.426, .147, .000), (85, 91, 81, None)),
    Site("harding.edu/hr", (73, 47), (19, 19), (25, 2), (29, 26), (.438, .356, .145), (64, 100, 8, 90)),
    Site("raitinvestmenttrust.com", (79, 65), (24, 24), (45, 33), (10, 8), (.089, .177, .015), (82, 100, 73, 80)),
    Site("mie2005.net", (89, 66), (16, 15), (28, 7), (45, 44), (.663, .258, .015), (74, 94, 25, 98)),
    Site("otago.settlers.museum", (111, 48), (27, 27), (82, 19), (2, 2), (.171, .568, .020), (43, 100, 23, 100)),
    Site("usamriid.army.mil", (142, 100), (38, 38), (59, 19), (45, 43), (.585, .296, .000), (70, 100, 32, 96)),
    Site("searcy.dina.org", (162, 154), (96, 95), (63, 56), (3, 3), (.111, .049, .078), (95, 99, 89, 100)),
    Site("cookinclub.com", (204, 187), (67, 66), (136, 121), (1, 0), (.480, .083, .307), (92, 99, 89, 0)),
    Site("americancaribbean.com", (287, 152), (60, 57), (222, 90), (5, 5), (.296, .470, .000), (53, 95, 41, 100)),
    Site("gltron.org", (294, 221), (20, 19), (213, 190), (61, 12), (.259, .248, .005), (75, 95, 89, 20)),
    Site("privacy.getnetwise.org", (305, 163), (137, 137), (48, 25), (120, 1), (.033, .466, .201), (53, 100, 52, 1)),
    Site("mypyramid.gov", (344, 193), (158, 154), (141, 5), (45, 34), (.160, .439, .000), (56, 97, 4, 76)),
    Site("digitalpreservation.gov", (414, 378), (346, 329), (42, 25), (26, 24), (.097, .087, .000), (91, 95, 60, 92)),
    Site("aboutfamouspeople.com", (432, 430), (267, 267), (165, 163), (0, 0), (.653, .005, .021), (99, 100, 99, None)),
    Site("home.alltel.net/bsprowl", (505, 112), (173, 112), (332, 0), (0, 0), (.012, .778, .009), (22, 65, 0, None)),
    Site("dpconline.org", (552, 384), (236, 227), (195, 37), (121, 120), (.509, .304, .013), (70, 96, 19, 99)),
    Site("cs.odu.edu/~pothen", (640, 435), (160, 151), (258, 120), (222, 164), (.402, .320, .062), (68, 94, 47, 74)),
    Site("eskimo.com/~scs", (719, 691), (696, 669), (22, 21), (1, 1), (.011, .039, .001), (96, 96, 95, 100)),
    Site("financeprofessor.com", (817, 626), (455, 404), (312, 180), (50, 42), (.211, .234, .011), (77, 89, 58, 84)),
    Site("fishingcairns.com.au", (1152, 1070), (259, 259), (890, 808), (3, 3), (.466, .071, .000), (93, 100, 91, 100)),
    Site("techlocker.com", (1216, 406), (687, 149), (529, 257), (0, 0), (.267, .666, .175), (33, 22, 49, None)),
    Site("kruderdorfmeister.com", (1509, 128), (1298, 31), (211, 97), (0, 0), (.056, .915, .066), (8, 2, 46, None)),
)

# Tables 17 and 18: resources; for the naïve, knowledgeable and exhaustive policy the missing and added shares.
TABLES_17_18 = (
    ("www.techlocker.com", 1, (.000, .000, .000), (.000, .000, 1.000)),
    ("www.harding.edu/hr", 50, (.220, .280, .240), (.328, .163, .591)),
    ("www.smoky.ccsd.k12.co.us", 57, (.509, .509, .491), (.000, .000, .970)),
    ("www.genesis427.com", 65, (.077, .077, .062), (.016, .016, .500)),
    ("englewood.k12.co.us/schools/clayton", 77, (.286, .286, .286), (.000, .000, .304)),
    ("www.raitinvestmenttrust.com", 79, (.127, .253, .127), (.014, .033, .859)),
    ("otago.settlers.museum", 120, (.525, .542, .533), (.017, .286, .341)),
    ("www.usamriid.army.mil", 121, (.413, .512, .471), (.220, .253, .880)),
    ("www.mie2005.net", 136, (.199, .096, .096), (.009, .000, .335)),
    ("searcy.dina.org", 164, (.049, .049, .037), (.071, .077, .325)),
    ("www.cookinclub.com", 216, (.037, .037, .032), (.140, .148, .790)),
    ("www.gltron.org", 306, (.180, .183, .183), (.004, .035, .260)),
    ("privacy.getnetwise.org", 326, (.479, .475, .307), (.306, .296, .321)),
    ("www.americancaribbean.com", 329, (.450, .450, .450), (.005, .005, .689)),
    ("www.eskimo.com/~scs", 357, (.006, .008, .006), (.508, .509, .834)),
    ("www.digitalpreservation.gov", 389, (.946, .321, .308), (.000, .612, .898)),
    ("www.aboutfamouspeople.com", 396, (.005, .005, .005), (.088, .086, .844)),
    ("home.alltel.net/bsprowl", 474, (.654, .808, .665), (.006, .000, .006)),
    ("www.dpconline.org", 580, (.209, .217, .214), (.000, .032, .282)),
    ("www.cs.odu.edu/~pothen", 610, (.067, .146, .152), (.044, .048, .178)),
    ("www.mypyramid.gov", 646, (.327, .345, .344), (.011, .002, .102)),
    ("www.financeprofessor.com", 673, (.165, .080, .120), (.147, .069, .511)),
    ("www.fishingcairns.com.au", 1181, (.025, .040, .036), (.000, .000, .197)),
    ("www.kruderdorfmeister.com", 2503, (.916, .916, .914), (.000, .000, .243)),
)

# Table 19, over the 24 sites: for the three policies, percent recovered and added: mean, median, least, most.
TABLE_19_RECOVERED = ((71.4, 79.6, 5.4, 100.0), (72.4, 76.5, 8.4, 100.0), (74.7, 80.2, 8.6, 100.0))
TABLE_19_ADDED = ((8.1, 1.3, 0.0, 50.8), (11.1, 3.4, 0.0, 61.2), (51.1, 42.1, 0.6, 100.0))

# Table 24, ten digital libraries: resources, percent recovered, difference vector.
TABLE_24 = (
    ("eprints.libr.port.ac.uk", 176, 97.2, (.722, .028, .018)),
    ("archiviomarini.sp.unipi.it", 222, 86.0, (.658, .131, .000)),
    ("eprints.erpanet.org", 272, 82.0, (.467, .062, .229)),
    ("open.ekduniya.net", 452, 95.4, (.699, .046, .005)),
    ("brief.weburb.dk", 458, 88.4, (.286, .109, .022)),
    ("eprints.bbk.ac.uk", 771, 93.4, (.720, .065, .004)),
    ("eprints.vu.edu.au", 1192, 98.1, (.316, .017, .004)),
    ("eprints.lse.ac.uk", 1336, 95.0, (.821, .046, .003)),
    ("www.cbmh.ca", 1695, 99.6, (.602, .004, .003)),
    ("bnarchives.yorku.ca", 2130, 30.3, (.173, .690, .012)),
)
# fmt: on

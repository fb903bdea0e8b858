"""Web archives: which there are, and how to ask each of them with good manners. All traffic to archives is here."""

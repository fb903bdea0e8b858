"""How good it is: routing data against what was really held, a recovered site against the lost one."""

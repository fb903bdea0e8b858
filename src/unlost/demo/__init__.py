"""The whole story on a made-up site: lost, found in three archives, routed, recovered, compared, exported, shown."""

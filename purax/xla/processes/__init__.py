"""Groups of processes: who belongs to one, who is alive, and how its members talk."""

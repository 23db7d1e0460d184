"""Groups of processes: who belongs to one, who is alive, and how its members talk.

Several processes form a group through a coordinator of our own (`coordinator`), which knows who proved to belong to
it (`distributed.group_secret`), who is alive, and tells all of a loss. XLA's coordination service exchanges devices,
finds the partners of Gloo and NCCL, and keeps users' keys and values; it listens at a local socket that only members
reach, through the coordinator (`tunnel`). It does no more, because of what was measured: it notices a killed process
after about eleven seconds, ours within one; it then ends all others by an abort with a C++ stack; a Python callback
ends in `std::bad_cast`; and it asks for no secret.

After a loss the coordinator brings the survivors together (`member.Member.regroup`): each offers a place, that of the
first is taken, and there they join a new group. XLA's clients cannot lose a member, so `distributed.elastic` makes new
ones, and keeps the old ones for good, since threads of theirs may wait for the dead. The main thread never waits inside
of XLA itself (`interruptible_calls`), not even for small programs, which XLA runs in the thread that calls them.
"""

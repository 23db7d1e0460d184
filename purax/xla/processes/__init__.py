"""Groups of processes: who belongs to one, who is alive, and how its members talk.

Several processes form a group through a coordinator of our own (`coordinator`), which knows who proved to belong to
it (`distributed.group_secret`), who is alive, and tells all of a loss. XLA's coordination service exchanges devices,
finds the partners of Gloo and NCCL, and keeps users' keys and values; it listens at a local socket that only members
reach, through the coordinator (`tunnel`). It does no more, because of what was measured: it notices a killed process
after about eleven seconds, ours within one; it then ends all others by an abort with a C++ stack; a Python callback
ends in `std::bad_cast`; and it asks for no secret.
"""

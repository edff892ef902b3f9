// Package supervisor starts job commands and makes sure that none outlives its run: when a run has to end, its whole
// process tree ends, also when the daemon was killed, is frozen or is slow.
//
// # Model
//
// The daemon has a [Client]. It starts one long-lived supervisor process (the same binary, [Main]) and talks to it over a
// socket pair. The supervisor is in a session of its own, has an empty environment and no descriptor of the daemon, and
// is a sub-reaper. It forks exec-child ([ChildMain], the same binary again) for each run, which looks at the clock
// a last time and then becomes the command.
//
//	daemon ── Client ══ socket ══ supervisor ── command ── its children, wherever they go
//	                                   └─────── command ── ...
//
// A program that runs one command in its own place (`cronlatch lock`) has a Client with [Options.Inherit]: there the
// supervisor and the command stay in the caller's session, each in a process group of its own, the command gets the
// caller's open files instead of pipes, and the supervisor runs nothing else.
//
//	caller ── Client ══ socket ══ supervisor ── command: the caller's files and terminal
//
// A run's tree is a cgroup (version 2), into which the first process is born. Without cgroups it is what the process
// table tells: session, process group, descent from the supervisor, and the mark CRONLATCH_RUN_ID in the environment.
//
// Files, in the order in which things happen: client.go, session.go (daemon's side), supervisor.go, orders.go, launch.go
// (fork), child.go (exec), run.go (when to end), tree.go with cgroup_linux.go, group.go and census.go (how to end),
// output.go, and secondline.go for a supervisor that failed; inherit.go is about Options.Inherit.
//
// # Guarantees
//
//   - A command is executed only before its StopAt on the boot clock, whoever was frozen since: the supervisor refuses a
//     stale order, and exec-child, in its last act before exec, a stale start.
//   - SIGTERM goes to the whole tree at StopAt, at the timeout or on Stop; SIGKILL after KillAfter and never later than at
//     Deadline. [Process.Extend] moves StopAt and Deadline; it does not take back a stop that has begun.
//   - The end of the connection to the daemon is a Stop of everything. The supervisor ends when all is dead.
//   - Leftovers of a command that ended are part of its run: SIGTERM, KillAfter, SIGKILL.
//   - [Process.Done] is closed when the tree is dead, not before. A process that keeps stdout open elsewhere delays it by
//     half a second at most.
//   - The child gets Spec.Env and nothing else, stdin from /dev/null, descriptors 0 to 2, default signals, no_new_privs.
//   - With Options.Inherit it gets every descriptor that its caller was started with, under its number, and none besides;
//     Spec.Ignore stays ignored; Spec.Foreground gives it the terminal. The supervisor closes its copies once the child is
//     forked, so that a pipe ends with the command. Everything that descends from the supervisor belongs to the command,
//     also without cgroups.
//   - [Process.Signal] reaches the command's process group, and never a process that got its number later.
//   - Output costs HeadBytes plus TailBytes of memory, however much is written. [Process.Output] reads it while the command
//     runs: the daemon asks, and gets one answer of at most 64 KiB. Nothing is sent unasked, so that neither a flood of
//     output nor a daemon that does not read delays anything else.
//   - The cause of an end is told apart; a command that ended before SIGTERM was sent has exited.
//
// # Not guaranteed
//
//   - A machine that is suspended, or a child that is stopped, in the microseconds between the last look and exec executes
//     late. It is killed when the supervisor runs again. Only a fencing token protects the resource.
//   - SIGKILL is sent at the deadline; death takes as long as the kernel takes. Without cgroups the main process group is
//     stopped at the deadline and the tree killed after the process table was read some times: 10 to 100 ms, and more
//     on a machine that has no processor time to give.
//   - Deadlines are looked at every 250 ms at least; after a suspend a tree may run for that long.
//   - A job with root's rights can move itself out of its cgroup, or ask another service (docker, systemd-run, at, cron) to run
//     something. That is not in the tree.
//   - Without cgroups a process that leaves its session, forks away within a second and has no mark can escape; see
//     [Client.Weaknesses], which also tells what macOS lacks.
//   - The output of a run is lost with its supervisor, except for what Process.Output has read.
//   - With Options.Inherit a command can become another user (sudo), whom an ordinary user cannot kill without a cgroup.
//
// # When something fails
//
//   - Daemon killed: the supervisor sees the end of the connection. Daemon frozen: nobody extends, StopAt and Deadline
//     come. Reports wait in a queue; the supervisor never blocks on a daemon that does not read.
//   - Supervisor killed: its direct children get SIGKILL from the kernel; the client kills every tree and only then
//     finishes the runs as [CauseSupervisorGone]. The next Start starts a new supervisor.
//   - Supervisor stuck: the client kills trees that outlive their deadline, and a supervisor that does not answer.
//   - Both killed: parent-death signal; the cgroups that are left are killed by the next daemon on the host.
//   - A cgroup cannot be made: that run is a process group, and the log says so.
//
// # Testing
//
// The tests run real processes: the test binary is daemon, supervisor, exec-child and job. They need Linux with a
// writable cgroup v2 for one half of the table and nothing for the other.
package supervisor

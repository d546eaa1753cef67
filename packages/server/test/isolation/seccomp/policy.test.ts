import { describe, expect, test } from "vitest";
import type { Verdict } from "../../../src/isolation/seccomp/decision.ts";
import { SYSCALL_NUMBERS } from "../../../src/isolation/seccomp/numbers.ts";
import { NOT_GRANTED, POLICY } from "../../../src/isolation/seccomp/policy.ts";
import { verdictOf } from "./calls.ts";

const [EPERM, ENOSYS, EPROTONOSUPPORT, EAFNOSUPPORT] = [1, 38, 93, 97];

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}

/** Of x86-64, the missing arguments being zero. */
function verdict(name: string, ...args: (number | bigint)[]): Verdict {
  const number = SYSCALL_NUMBERS.x64.get(name);
  if (number === undefined) throw new Error(`no such call: ${name}`);
  const padded = [...args.map((arg) => BigInt.asUintN(64, BigInt(arg))), 0n, 0n, 0n, 0n, 0n, 0n].slice(0, 6);
  return verdictOf({ number, args: padded }, "x64");
}

const REFUSED: Readonly<Record<string, string>> = {
  namespaces: "unshare setns",
  mounts:
    "mount umount2 pivot_root chroot fsopen fsmount fsconfig fspick open_tree open_tree_attr move_mount mount_setattr",
  "files by handle": "open_by_handle_at fanotify_init fanotify_mark",
  keyrings: "keyctl add_key request_key",
  "kernel programs": "bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register",
  modules: "init_module finit_module delete_module create_module query_module kexec_load kexec_file_load",
  machine:
    "reboot swapon swapoff acct quotactl quotactl_fd iopl ioperm syslog vhangup modify_ldt sethostname setdomainname",
  clock: "settimeofday clock_settime adjtimex clock_adjtime",
  "placement of memory":
    "move_pages mbind set_mempolicy set_mempolicy_home_node get_mempolicy migrate_pages memfd_secret remap_file_pages",
  "other processes": "kcmp pidfd_getfd process_madvise process_mrelease",
  relics: "lookup_dcookie nfsservctl uselib ustat sysfs _sysctl vserver afs_syscall security tuxcall getpmsg putpmsg",
};

// The names moby's default profile allows a container without capabilities, where they exist on x86-64 or arm64.
const DOCKER = new Set(
  words(`
    accept accept4 access adjtimex alarm arch_prctl bind brk cachestat capget capset chdir chmod chown clock_adjtime
    clock_getres clock_gettime clock_nanosleep clone close close_range connect copy_file_range creat dup dup2 dup3
    epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2
    execve execveat exit exit_group faccessat faccessat2 fadvise64 fallocate fanotify_mark fchdir fchmod fchmodat fchmodat2
    fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstatfs fsync ftruncate
    futex futex_requeue futex_wait futex_waitv futex_wake futimesat get_robust_list get_thread_area getcpu getcwd getdents
    getdents64 getegid geteuid getgid getgroups getitimer getpeername getpgid getpgrp getpid getppid getpriority getrandom
    getresgid getresuid getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid getxattr getxattrat
    inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents io_setup
    io_submit ioctl ioprio_get ioprio_set kill landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown
    lgetxattr link linkat listen listmount listxattr listxattrat llistxattr lremovexattr lseek lsetxattr lstat madvise
    map_shadow_stack membarrier memfd_create memfd_secret mincore mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap
    modify_ldt mprotect mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink mremap mseal msgctl msgget
    msgrcv msgsnd msync munlock munlockall munmap name_to_handle_at nanosleep newfstatat open openat openat2 pause
    personality pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll prctl pread64 preadv
    preadv2 prlimit64 process_mrelease process_vm_readv process_vm_writev pselect6 ptrace pwrite64 pwritev pwritev2 read
    readahead readlink readlinkat readv recvfrom recvmmsg recvmsg remap_file_pages removexattr removexattrat rename
    renameat renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn
    rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity
    sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam
    sched_setscheduler sched_yield seccomp select semctl semget semop semtimedop sendfile sendmmsg sendmsg sendto
    set_robust_list set_thread_area set_tid_address setfsgid setfsuid setgid setgroups setitimer setpgid setpriority
    setregid setresgid setresuid setreuid setrlimit setsid setsockopt setuid setxattr setxattrat shmat shmctl shmdt shmget
    shutdown sigaltstack signalfd signalfd4 socket socketpair splice stat statfs statmount statx symlink symlinkat sync
    sync_file_range syncfs sysinfo tee tgkill time timer_create timer_delete timer_getoverrun timer_gettime timer_settime
    timerfd_create timerfd_gettime timerfd_settime times tkill truncate umask uname unlink unlinkat uretprobe utime
    utimensat utimes vfork vmsplice wait4 waitid write writev`),
);

describe("the policy", () => {
  test("allows nothing that Docker's default profile does not", () => {
    const beyond = [...POLICY].filter(([name, decision]) => typeof decision !== "number" && !DOCKER.has(name));
    expect(beyond).toEqual([]);
  });

  test("speaks of calls that exist", () => {
    const known = new Set([...SYSCALL_NUMBERS.x64.keys(), ...SYSCALL_NUMBERS.arm64.keys()]);
    expect([...POLICY.keys()].filter((name) => !known.has(name))).toEqual([]);
  });

  test.each(Object.entries(REFUSED))("refuses %s", (_, names) => {
    for (const name of words(names)) expect([name, verdict(name)]).toEqual([name, NOT_GRANTED]);
  });

  test("has no clone3 and none of the newest calls, so that programs do without", () => {
    const absent = words("clone3 statmount listmount listns file_getattr file_setattr lsm_list_modules");
    expect(absent.map((name) => verdict(name))).toEqual(absent.map(() => ENOSYS));
  });

  test("lets a debugger work on its children", () => {
    expect(words("ptrace process_vm_readv process_vm_writev").map((name) => verdict(name))).toEqual(
      new Array(3).fill("allow"),
    );
  });

  const HIGH = 0xabcd_0000_0000n; // bits the kernel does not look at
  const SIGCHLD = 17;
  const THREAD = 0x3d0f00; // what libc gives clone for a new thread
  const CLOEXEC = 0x80000;

  test.each<[string, (number | bigint)[], Verdict]>([
    ["clone", [SIGCHLD], "allow"],
    ["clone", [THREAD], "allow"],
    ["clone", [0x1000_0000 | SIGCHLD], EPERM], // user
    ["clone", [0x0002_0000 | SIGCHLD], EPERM], // mount
    ["clone", [0x2000_0000 | SIGCHLD], EPERM], // pid
    ["clone", [0x4000_0000 | SIGCHLD], EPERM], // net
    ["clone", [0x0800_0000 | SIGCHLD], EPERM], // ipc
    ["clone", [0x0400_0000 | SIGCHLD], EPERM], // uts
    ["clone", [0x0200_0000 | SIGCHLD], EPERM], // cgroup
    ["clone", [0x0000_0080], EPERM], // time
    ["clone", [HIGH | 0x1000_0000n], EPERM],
    ["ioctl", [0, 0x5412], EPERM], // TIOCSTI
    ["ioctl", [0, 0x541c], EPERM], // TIOCLINUX
    ["ioctl", [0, 0x5423], EPERM], // TIOCSETD
    ["ioctl", [0, HIGH | 0x5412n], EPERM],
    ["ioctl", [0, -0x1_0000_0000n + 0x5412n], EPERM],
    ["ioctl", [0, 0x5413], "allow"], // TIOCGWINSZ
    ["ioctl", [0, 0x541b], "allow"], // FIONREAD
    ["ioctl", [0, -0x7ffb_abd0], "allow"], // TIOCGPTN, its sign extended as musl does
    ["personality", [0], "allow"],
    ["personality", [8], "allow"],
    ["personality", [0xffff_ffff], "allow"],
    ["personality", [-1], "allow"],
    ["personality", [0x0040000], EPERM], // ADDR_NO_RANDOMIZE
    ["personality", [0x0400000], EPERM], // READ_IMPLIES_EXEC
    ["personality", [HIGH | 0x0040000n], EPERM],
    ["prctl", [15], "allow"], // PR_SET_NAME
    ["prctl", [22], "allow"], // PR_SET_SECCOMP
    ["prctl", [62], EPERM], // PR_SCHED_CORE
    ["mknod", [0, 0o010644], "allow"],
    ["mknod", [0, 0o020644], EPERM],
    ["mknodat", [0, 0, 0o060644], EPERM],
    ["mknodat", [0, 0, HIGH | 0o020644n], EPERM],
    ["socket", [1, 1 | CLOEXEC], "allow"],
    ["socket", [1, 5], "allow"],
    ["socket", [2, 1, 6], "allow"],
    ["socket", [10, 2 | CLOEXEC], "allow"],
    ["socket", [2, 2, 1], "allow"], // ping without privilege
    ["socket", [16, 3 | CLOEXEC, 0], "allow"], // getifaddrs
    ["socket", [16, 3, 12], EPROTONOSUPPORT], // netfilter
    ["socket", [16, 3, 16], EPROTONOSUPPORT], // generic
    ["socket", [2, 1, 132], EPROTONOSUPPORT], // SCTP
    ["socket", [2, 2, 115], EPROTONOSUPPORT], // L2TP
    ["socket", [2, 3, 1], EPERM], // raw
    ["socket", [10, 3 | CLOEXEC, 58], EPERM],
    ["socket", [2, 10, 0x300], EPERM], // the packet socket of old
    ["socket", [17, 3, 0x300], EAFNOSUPPORT], // packet
    ["socket", [38, 5], EAFNOSUPPORT], // kernel cryptography
    ["socket", [40, 1], EAFNOSUPPORT], // vsock
    ["socket", [HIGH | 40n, 1], EAFNOSUPPORT],
    ["socketpair", [1, 1], "allow"],
    ["socketpair", [30, 5], EAFNOSUPPORT], // TIPC
  ])("%s(%s) → %s", (name, args, expected) => {
    expect(verdict(name, ...args)).toBe(expected);
  });
});

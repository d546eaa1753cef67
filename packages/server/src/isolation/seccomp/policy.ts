import { strict as assert } from "node:assert";
import { CONDITIONS, COUNTED_MAPPINGS } from "./conditions.ts";
import { type Decision, Errno } from "./decision.ts";
import { type Architecture, SYSCALL_NUMBERS } from "./numbers.ts";

// Which system calls the box may make. In short:
//
//   allowed        ALLOWED below
//   by arguments   CONDITIONS: clone, ioctl, mknod, personality, prctl, prlimit64, process_vm_*, ptrace, socket
//   ENOSYS         ABSENT below, and every number without a name, so that programs fall back to what they used before
//   EPERM          everything else
//
// The list is Docker's default for a container without capabilities, less what no development tool was seen to need.
// Left out on purpose although Docker allows it: adjtimex and clock_adjtime (reading the kernel's clock discipline),
// memfd_secret, fanotify_mark, cachestat (what the host has been reading), process_mrelease, remap_file_pages, modify_ldt.
// name_to_handle_at is allowed so that the workspace itself answers for its names; what it yields opens nothing here.
//
// ptrace and process_vm_* are safe because the kernel runs this filter after the tracer (since 4.8), and because the pid
// namespace holds only processes of the same sandbox. Filters of the box's own (seccomp, landlock) only tighten this one.

/** Not to be had, and nothing to worry about: the answer of an older kernel. */
const ABSENT = [
  "clone3", // its flags are behind a pointer a filter cannot follow; libc then uses clone
  "file_getattr",
  "file_setattr",
  "listmount",
  "listns",
  "lsm_get_self_attr",
  "lsm_list_modules",
  "lsm_set_self_attr",
  "statmount",
  "uprobe", // this one and the next never reach a filter on newer kernels, which answer by themselves
  "uretprobe",
];

const ALLOWED: Readonly<Record<string, string>> = {
  files: `
    access chdir chmod chown close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64
    fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync flock fstat fstatfs fsync ftruncate
    futimesat getcwd getdents getdents64 lchown link linkat lseek lstat mkdir mkdirat name_to_handle_at newfstatat open openat openat2
    readahead readlink readlinkat rename renameat renameat2 rmdir stat statfs statx symlink symlinkat sync
    sync_file_range syncfs truncate umask unlink unlinkat utime utimensat utimes`,
  extendedAttributes: `
    fgetxattr flistxattr fremovexattr fsetxattr getxattr getxattrat lgetxattr listxattr listxattrat llistxattr
    lremovexattr lsetxattr removexattr removexattrat setxattr setxattrat`,
  transfer: `
    pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readv sendfile splice tee vmsplice write writev
    io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit`,
  waiting: `
    epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 inotify_add_watch
    inotify_init inotify_init1 inotify_rm_watch pipe pipe2 poll ppoll pselect6 select signalfd signalfd4`,
  memory: `
    brk madvise map_shadow_stack membarrier memfd_create mincore mlock mlock2 mlockall mmap mprotect mremap mseal msync
    munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect`,
  processes: `
    arch_prctl execve execveat exit exit_group fork getcpu getpgid getpgrp getpid getppid getpriority getrlimit getrusage
    getsid gettid ioprio_get ioprio_set kill pidfd_open pidfd_send_signal
    restart_syscall rseq set_tid_address setpgid setpriority setrlimit setsid tgkill tkill vfork wait4 waitid`,
  scheduling: `
    sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler
    sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield`,
  threads: `
    futex futex_requeue futex_wait futex_waitv futex_wake get_robust_list set_robust_list`,
  signals: `
    pause rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait
    rt_tgsigqueueinfo sigaltstack`,
  identity: `
    capget capset getegid geteuid getgid getgroups getresgid getresuid getuid setfsgid setfsuid setgid setgroups
    setregid setresgid setresuid setreuid setuid`,
  time: `
    alarm clock_getres clock_gettime clock_nanosleep getitimer gettimeofday nanosleep setitimer time timer_create
    timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times`,
  sockets: `
    accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg recvmsg sendmmsg sendmsg
    sendto setsockopt shutdown`,
  messages: `
    mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget msgrcv msgsnd semctl semget
    semop semtimedop shmat shmctl shmdt shmget`,
  system: "getrandom sysinfo uname",
  ownRestrictions: "landlock_add_rule landlock_create_ruleset landlock_restrict_self seccomp",
};

/** The decision by name; a call without a row is `NOT_GRANTED`. */
export type Policy = ReadonlyMap<string, Decision>;

export const POLICY: Policy = table([
  ...ABSENT.map((name) => [name, Errno.ENOSYS] as const),
  ...Object.values(ALLOWED)
    .flatMap((names) => names.trim().split(/\s+/))
    .map((name) => [name, "allow"] as const),
  ...Object.entries(CONDITIONS),
]);

/**
 * The same for a box whose memory is limited by RLIMIT_DATA alone, which counts private writable memory: what it does not
 * count cannot be had. Programs take files in /dev/shm instead, whose size is limited.
 */
export const POLICY_OF_COUNTED_MEMORY: Policy = new Map([
  ...POLICY,
  ["memfd_create", Errno.ENOSYS],
  ["shmget", Errno.ENOSYS],
  ["mmap", COUNTED_MAPPINGS],
]);

/** A name in two places would quietly get the decision of the last. */
function table(rows: readonly (readonly [name: string, decision: Decision])[]): Policy {
  const decisions = new Map(rows);
  assert(decisions.size === rows.length, "a call is listed twice in the seccomp policy");
  return decisions;
}

export const NOT_GRANTED = Errno.EPERM;

/** A number that has no name, newer than the table most of the time. */
export const UNKNOWN = Errno.ENOSYS;

/** The decision for every number from 0 to the last one known; what lies above is `UNKNOWN`. */
export function decisionsByNumber(architecture: Architecture, policy: Policy): Decision[] {
  const numbers = SYSCALL_NUMBERS[architecture];
  const decisions = new Array<Decision>(Math.max(...numbers.values()) + 1).fill(UNKNOWN);
  for (const [name, number] of numbers) decisions[number] = policy.get(name) ?? NOT_GRANTED;
  return decisions;
}

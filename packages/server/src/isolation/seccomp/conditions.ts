import { allBut, type Decision, Errno, only, type Question, WHOLE_WORD } from "./decision.ts";

// The calls that are allowed for some of their arguments.

const { EPERM, ENOMEM, EAFNOSUPPORT, EPROTONOSUPPORT } = Errno;

const CLONE_NEW = {
  TIME: 0x0000_0080, // shares its bit with the exit signal, where no real signal reaches it
  NS: 0x0002_0000,
  CGROUP: 0x0200_0000,
  UTS: 0x0400_0000,
  IPC: 0x0800_0000,
  USER: 0x1000_0000,
  PID: 0x2000_0000,
  NET: 0x4000_0000,
};
const ANY_NEW_NAMESPACE = Object.values(CLONE_NEW).reduce((flags, flag) => flags | flag);

// TIOCSTI and TIOCLINUX type on the terminal of somebody else; TIOCSETD loads line disciplines, drivers nobody needs
// here and some of which were a way to root.
const IOCTL = { TIOCSTI: 0x5412, TIOCLINUX: 0x541c, TIOCSETD: 0x5423 };

// A core scheduling cookie of one's own keeps the sibling hyperthread idle: other sandboxes would pay. All other options
// concern the caller alone, or need a capability.
const PR_SCHED_CORE = 62;

// Linux, with its 32 bit and 2.6 names for uname, and the question for the current one. ADDR_NO_RANDOMIZE and
// READ_IMPLIES_EXEC weaken a program against its input: gdb prints a warning and goes on.
const PERSONALITIES = [0x0000_0000, 0x0000_0008, 0x0002_0000, 0x0002_0008, 0xffff_ffff];

// mknod: plain files, pipes and sockets. A character device 0:0 needs no capability and is a whiteout for overlayfs.
const FILE_TYPE = { mask: 0xf000, none: 0, fifo: 0x1000, regular: 0x8000, socket: 0xc000 };
const NODES = [FILE_TYPE.none, FILE_TYPE.fifo, FILE_TYPE.regular, FILE_TYPE.socket];

const AF = { UNIX: 1, INET: 2, INET6: 10, NETLINK: 16 };
const SOCK = { mask: 0xf, STREAM: 1, DGRAM: 2, RAW: 3, SEQPACKET: 5 };
const IPPROTO = { default: 0, ICMP: 1, TCP: 6, UDP: 17, ICMPV6: 58 };
const NETLINK_ROUTE = 0;

// A refused family says what a kernel without it says, which every program that tries one is ready for; likewise a
// refused protocol. A raw socket says what the kernel says to whoever lacks CAP_NET_RAW. Of the types, STREAM and DGRAM
// are what the internet needs: SOCK_PACKET is a packet socket under AF_INET, and the others load SCTP, DCCP, L2TP.
const INTERNET: Decision = {
  argument: 1,
  mask: SOCK.mask,
  cases: [
    { values: [SOCK.STREAM, SOCK.DGRAM], decision: only(2, WHOLE_WORD, Object.values(IPPROTO), EPROTONOSUPPORT) },
  ],
  otherwise: EPERM,
};

// Reading the own interfaces and addresses (getifaddrs, ip) is routing netlink, and asks for a "raw" socket by custom.
const NETLINK: Decision = {
  argument: 1,
  mask: SOCK.mask,
  cases: [{ values: [SOCK.RAW, SOCK.DGRAM], decision: only(2, WHOLE_WORD, [NETLINK_ROUTE], EPROTONOSUPPORT) }],
  otherwise: EPERM,
};

const SOCKET: Question = {
  argument: 0,
  mask: WHOLE_WORD,
  cases: [
    { values: [AF.UNIX], decision: only(1, SOCK.mask, [SOCK.STREAM, SOCK.DGRAM, SOCK.SEQPACKET], EPERM) },
    { values: [AF.INET, AF.INET6], decision: INTERNET },
    { values: [AF.NETLINK], decision: NETLINK },
  ],
  otherwise: EAFNOSUPPORT,
};

// Of all mappings RLIMIT_DATA counts those that are private: not what processes share without a file, and not a stack that is
// mapped at full size. MAP_DROPPABLE is private, too.
const MAP = { SHARED: 1, PRIVATE: 2, SHARED_VALIDATE: 3, DROPPABLE: 8, ANONYMOUS: 0x20, GROWSDOWN: 0x100 };
const MAP_TYPE = 0x0f;

export const COUNTED_MAPPINGS = only(
  3,
  MAP_TYPE | MAP.ANONYMOUS | MAP.GROWSDOWN,
  [MAP.SHARED, MAP.SHARED_VALIDATE, MAP.PRIVATE, MAP.PRIVATE | MAP.ANONYMOUS, MAP.DROPPABLE | MAP.ANONYMOUS],
  ENOMEM,
);

// Process 1 of a box starts all others: none of them may look into it, or lower its limits.
const KEEPER = [1];

export const CONDITIONS: Readonly<Record<string, Question>> = {
  clone: only(0, ANY_NEW_NAMESPACE, [0], EPERM),
  ioctl: allBut(1, WHOLE_WORD, Object.values(IOCTL), EPERM),
  mknod: only(1, FILE_TYPE.mask, NODES, EPERM),
  mknodat: only(2, FILE_TYPE.mask, NODES, EPERM),
  personality: only(0, WHOLE_WORD, PERSONALITIES, EPERM),
  prctl: allBut(0, WHOLE_WORD, [PR_SCHED_CORE], EPERM),
  prlimit64: allBut(0, WHOLE_WORD, KEEPER, EPERM),
  process_vm_readv: allBut(0, WHOLE_WORD, KEEPER, EPERM),
  process_vm_writev: allBut(0, WHOLE_WORD, KEEPER, EPERM),
  ptrace: allBut(1, WHOLE_WORD, KEEPER, EPERM),
  socket: SOCKET,
  socketpair: only(0, WHOLE_WORD, [AF.UNIX], EAFNOSUPPORT), // TIPC has pairs too
};

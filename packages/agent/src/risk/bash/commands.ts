import type { NestedCode, Rule } from "../findings.ts";
import type { PathUse } from "../places.ts";

const rule = (level: Rule["level"], pattern: string, reason: string): Rule => ({ level, pattern, reason });

const NETWORK = rule("MEDIUM", "network", "uses the network");
const PRIVILEGE = rule("HIGH", "privilege", "changes the machine, or who it runs as");
const PERSISTENCE = rule("HIGH", "persistence", "leaves something that is run later");
const KILLS = rule("HIGH", "process-control", "ends processes");
const DISKS = rule("CRITICAL", "device", "writes to disks past their file systems");
const CONTAINERS = rule("HIGH", "privilege", "controls containers of the host");
const ENVIRONMENT = rule("MEDIUM", "environment", "shows the environment variables");
const OTHER_CODE = rule("LOW", "interpreter", "runs an interpreter");
const READS = rule("LOW", "file-read", "reads files");
const WRITES = rule("LOW", "file-write", "writes files");
const SYSTEM = rule("LOW", "system-information", "asks about the machine");
const DELETION = rule("MEDIUM", "deletion", "deletes files");

const each = (names: string, what: Rule): Record<string, Rule> =>
  Object.fromEntries(names.split(/\s+/).map((name) => [name, what]));

/** Command → what to say of it, whatever its arguments are. A command that is not listed is LOW. */
export const COMMAND_RULES: Readonly<Record<string, Rule>> = {
  ...each(
    "curl wget nc ncat netcat socat ssh scp sftp rsync ftp tftp telnet dig nslookup host ping traceroute",
    NETWORK,
  ),
  ...each(
    "nmap tcpdump aria2c http https lynx w3m aws gcloud az gh mosh smbclient ldapsearch psql mysql redis-cli",
    NETWORK,
  ),
  ...each("sudo doas su pkexec runuser chroot unshare nsenter mount umount insmod modprobe rmmod sysctl", PRIVILEGE),
  ...each(
    "iptables ip6tables nft ufw setcap setfacl useradd usermod userdel groupadd passwd chpasswd visudo",
    PRIVILEGE,
  ),
  ...each("reboot shutdown halt poweroff init telinit swapoff chown chgrp chattr hostnamectl timedatectl", PRIVILEGE),
  ...each("crontab at batch systemctl service launchctl update-rc.d chkconfig loginctl", PERSISTENCE),
  ...each("kill pkill killall killall5 xkill fuser", KILLS),
  ...each("mkfs mke2fs mkswap fdisk sfdisk parted wipefs blkdiscard cryptsetup lvremove vgremove badblocks", DISKS),
  ...each("docker podman nerdctl ctr crictl kubectl helm lxc runc virsh", CONTAINERS),
  ...each("printenv compgen", ENVIRONMENT),
  ...each("rm unlink rmdir shred truncate", DELETION),
  ...each("gdb strace ltrace perf bpftrace", rule("HIGH", "process-control", "looks into other processes")),
  ...each("enable", rule("HIGH", "native-code", "loads native code into the shell")),
  ...each("alias", rule("MEDIUM", "alias", "gives a command another meaning")),
  ...each(
    "gpg gpg2 ssh-keygen ssh-add ssh-agent pass security keyring",
    rule("MEDIUM", "credentials", "works with keys"),
  ),
  ...each("history fc", rule("MEDIUM", "history", "reads earlier commands")),
  ...each("script screen tmux expect", rule("MEDIUM", "terminal", "opens a terminal for other programs")),
  ...each("perl ruby php lua osascript Rscript julia tclsh gawk", OTHER_CODE),
  ...each("cat less more head tail grep egrep fgrep rg ag ls tree find fd stat file wc du diff cmp comm", READS),
  ...each(
    "sort uniq cut paste join awk sed jq yq tr rev nl od xxd hexdump base64 md5sum sha256sum strings realpath",
    READS,
  ),
  ...each("cp mv ln install tee touch mkdir tar zip unzip gzip gunzip patch split dd chmod mkfifo mktemp", WRITES),
  ...each(
    "uname whoami id hostname ps top uptime free df which type who w last lsof ss netstat ip ifconfig env",
    SYSTEM,
  ),
};

/** Commands that run the command among their arguments → options that take a value, and words before the command. */
export const WRAPPERS: Readonly<Record<string, { readonly valued: string; readonly words: number }>> = {
  sudo: { valued: "ugpCDhrtTU", words: 0 },
  doas: { valued: "uC", words: 0 },
  env: { valued: "uCS", words: 0 },
  nohup: { valued: "", words: 0 },
  time: { valued: "fo", words: 0 },
  timeout: { valued: "ks", words: 1 },
  nice: { valued: "n", words: 0 },
  ionice: { valued: "cnp", words: 0 },
  chrt: { valued: "", words: 1 },
  setsid: { valued: "", words: 0 },
  stdbuf: { valued: "ioe", words: 0 },
  xargs: { valued: "nPIdLEsa", words: 0 },
  parallel: { valued: "j", words: 0 },
  command: { valued: "", words: 0 },
  builtin: { valued: "", words: 0 },
  exec: { valued: "a", words: 0 },
  coproc: { valued: "", words: 0 },
  busybox: { valued: "", words: 0 },
  toybox: { valued: "", words: 0 },
  strace: { valued: "eosp", words: 0 },
  watch: { valued: "n", words: 0 },
  chroot: { valued: "", words: 1 },
  flock: { valued: "wE", words: 1 },
  unshare: { valued: "", words: 0 },
  nsenter: { valued: "tSG", words: 0 },
  npx: { valued: "p", words: 0 },
  bunx: { valued: "", words: 0 },
  caffeinate: { valued: "", words: 0 },
};

/** Interpreters → the language that is looked at, and the option that takes code. */
export const INTERPRETERS: Readonly<
  Record<string, { readonly language: NestedCode["language"]; readonly codeOption: RegExp }>
> = {
  ...interpreters("sh bash dash zsh ksh ash mksh fish rbash", "bash", /^-[a-zA-Z]*c$/),
  ...interpreters("python python2 python3 pypy pypy3 ipython", "python", /^-[a-zA-Z]*c$/),
  ...interpreters("node nodejs bun deno", "javascript", /^(?:-[a-z]*[ep]|--eval|--print)$/),
  ...interpreters("tsx ts-node", "typescript", /^(?:-e|--eval)$/),
};

/** Interpreters whose language is not looked at, with the option that takes code. */
export const UNREAD_INTERPRETERS: Readonly<Record<string, RegExp>> = {
  perl: /^-[a-zA-Z]*[eE]/,
  ruby: /^-[a-zA-Z]*e/,
  php: /^-[a-zA-Z]*r/,
  lua: /^-e/,
  osascript: /^-e/,
  Rscript: /^-e/,
  julia: /^-e/,
};

/** Subcommands that bring code of others onto the machine. */
export const INSTALLS: Readonly<Record<string, RegExp>> = {
  npm: /^(?:i|install|ci|add|update|up|exec|x|link|rebuild|create|init)$/,
  pnpm: /^(?:i|install|add|update|dlx|create)$/,
  yarn: /^(?:install|add|upgrade|dlx|create)$/,
  bun: /^(?:i|install|add|update|x|create)$/,
  pip: /^(?:install|download|wheel)$/,
  pip3: /^(?:install|download|wheel)$/,
  pipx: /^(?:install|run|inject)$/,
  uv: /^(?:pip|add|sync|tool)$/,
  poetry: /^(?:install|add|update)$/,
  conda: /^(?:install|create|update)$/,
  cargo: /^(?:install|add|update)$/,
  go: /^(?:install|get)$/,
  gem: /^(?:install|update)$/,
  bundle: /^(?:install|update)$/,
  composer: /^(?:install|require|update)$/,
  brew: /^(?:install|upgrade|tap)$/,
  apt: /^(?:install|update|upgrade|remove|purge)$/,
  "apt-get": /^(?:install|update|upgrade|remove|purge)$/,
  apk: /^(?:add|update|upgrade|del)$/,
  dnf: /^(?:install|update|upgrade|remove)$/,
  yum: /^(?:install|update|upgrade|remove)$/,
  pacman: /^-[SUR]/,
};

/** What commands use their path arguments for. Others read. */
export const PATH_ARGUMENTS: Readonly<Record<string, { readonly use: PathUse; readonly which: "all" | "last" }>> = {
  ...pathArguments("rm unlink rmdir shred truncate", "delete", "all"),
  ...pathArguments("cp mv ln install rsync scp", "write", "last"),
  ...pathArguments("tee touch mkdir chmod chown chgrp mkfifo patch", "write", "all"),
};

/** Commands whose first word that is no option is a pattern or a program, not a path. */
export const FIRST_IS_TEXT: ReadonlySet<string> = new Set(
  "grep egrep fgrep rg ag sed awk gawk mawk jq yq tr echo printf expr perl test [ git npm seq date export".split(" "),
);

/** Commands that make readable text of unreadable text, with the arguments that tell so. */
export const DECODERS: Readonly<Record<string, RegExp>> = {
  base64: /^(?:-[a-zA-Z]*[dD]|--decode)/,
  base32: /^(?:-[a-zA-Z]*d|--decode)/,
  basenc: /^(?:-[a-zA-Z]*d|--decode)/,
  xxd: /^-[a-z]*r/,
  openssl: /^(?:enc|base64|-d|aes)/,
  gzip: /^-[a-z]*d/,
  gunzip: /^/,
  zcat: /^/,
  xz: /^-[a-z]*d/,
  bzip2: /^-[a-z]*d/,
  uudecode: /^/,
  rev: /^/,
  tac: /^/,
  tr: /^/,
  printf: /\\(?:x|[0-7]{2}|u)/,
};

/** Decoders even without any argument. */
export const PLAIN_DECODERS: ReadonlySet<string> = new Set(["rev", "tac", "zcat", "gunzip", "uudecode", "tr"]);

/** Variables that change what other programs do → how bad it is to set them. */
export const GOVERNING_VARIABLES: Readonly<Record<string, Rule>> = {
  ...each(
    `LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT BASH_ENV ENV PROMPT_COMMAND PS0 PS1 PS2 PS3 PS4 SHELLOPTS BASHOPTS NODE_OPTIONS
     PYTHONSTARTUP PERL5OPT RUBYOPT JAVA_TOOL_OPTIONS GIT_SSH_COMMAND GIT_SSH GIT_EXTERNAL_DIFF GIT_PAGER GIT_EDITOR
     PAGER MANPAGER LESSOPEN LESSCLOSE BROWSER DYLD_INSERT_LIBRARIES`,
    rule("HIGH", "governing-variable", "sets a variable that makes other programs run code"),
  ),
  ...each("PATH PYTHONPATH PYTHONHOME NODE_PATH HOME CDPATH EDITOR VISUAL SHELL", {
    level: "MEDIUM",
    pattern: "governing-variable",
    reason: "sets a variable that decides which programs are run",
  }),
  ...each("IFS GLOBIGNORE POSIXLY_CORRECT HISTFILE TMPDIR LC_ALL LANG TZ BASH_CMDS BASH_ALIASES", {
    level: "LOW",
    pattern: "governing-variable",
    reason: "sets a variable that changes how commands are read",
  }),
};

function interpreters(names: string, language: NestedCode["language"], codeOption: RegExp) {
  return Object.fromEntries(names.split(" ").map((name) => [name, { language, codeOption }]));
}

function pathArguments(names: string, use: PathUse, which: "all" | "last") {
  return Object.fromEntries(names.split(" ").map((name) => [name, { use, which }]));
}

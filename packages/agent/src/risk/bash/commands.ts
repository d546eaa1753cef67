import { each, type NestedCode, type Rule, rule, ruleTable } from "../findings.ts";
import type { PathUse } from "../places.ts";

const NETWORK = rule("MEDIUM", "network", "uses the network");
export const ENVIRONMENT = rule("MEDIUM", "environment", "shows the environment variables");

/** Command → what to say of it, whatever its arguments are. A command that is not listed is LOW. */
export const COMMAND_RULES = ruleTable(`
  MEDIUM network: uses the network
    curl wget nc ncat netcat socat ssh scp sftp rsync ftp tftp telnet dig nslookup host ping traceroute nmap tcpdump
    aria2c http https lynx w3m aws gcloud az gh mosh smbclient ldapsearch psql mysql redis-cli
  HIGH privilege: changes the machine, or who it runs as
    sudo doas su pkexec runuser chroot unshare nsenter mount umount insmod modprobe rmmod sysctl iptables ip6tables
    nft ufw setcap setfacl useradd usermod userdel groupadd passwd chpasswd visudo reboot shutdown halt poweroff init
    telinit swapoff chown chgrp chattr hostnamectl timedatectl
  HIGH persistence: leaves something that is run later
    crontab at batch systemctl service launchctl update-rc.d chkconfig loginctl
  HIGH process-control: ends processes
    kill pkill killall killall5 xkill fuser
  CRITICAL device: writes to disks past their file systems
    mkfs mke2fs mkswap fdisk sfdisk parted wipefs blkdiscard cryptsetup lvremove vgremove badblocks
  HIGH privilege: controls containers of the host
    docker podman nerdctl ctr crictl kubectl helm lxc runc virsh
  MEDIUM environment: shows the environment variables
    printenv compgen
  MEDIUM deletion: deletes files
    rm unlink rmdir shred truncate
  HIGH process-control: looks into other processes
    gdb strace ltrace perf bpftrace
  HIGH native-code: loads native code into the shell
    enable
  MEDIUM alias: gives a command another meaning
    alias
  MEDIUM credentials: works with keys
    gpg gpg2 ssh-keygen ssh-add ssh-agent pass security keyring
  MEDIUM history: reads earlier commands
    history fc
  MEDIUM terminal: opens a terminal for other programs
    script screen tmux expect
`);

/** Commands that run the command among their arguments: NAME:OPTIONS that take a value:WORDS before the command. */
export const WRAPPERS: ReadonlyMap<string, { readonly valued: string; readonly words: number }> = new Map(
  `nohup setsid command builtin coproc busybox toybox unshare bunx caffeinate chrt::1 chroot::1 sudo:ugpCDhrtTU doas:uC
   env:uCS time:fo timeout:ks:1 nice:n ionice:cnp stdbuf:ioe xargs:nPIdLEsa parallel:j exec:a strace:eosp watch:n
   flock:wE:1 nsenter:tSG npx:p`
    .split(/\s+/)
    .map((row) => row.split(":"))
    .map(([name, valued = "", words = "0"]) => [name!, { valued, words: Number(words) }]),
);

/** Interpreters → the language that is looked at, and the option that takes code. */
export const INTERPRETERS: Readonly<
  Record<string, { readonly language: NestedCode["language"]; readonly codeOption: RegExp }>
> = {
  ...each("sh bash dash zsh ksh ash mksh fish rbash", { language: "bash", codeOption: /^-[a-zA-Z]*c$/ } as const),
  ...each("python python2 python3 pypy pypy3", { language: "python", codeOption: /^-[a-zA-Z]*c$/ } as const),
  ...each("node nodejs bun deno", { language: "javascript", codeOption: /^(?:-[a-z]*[ep]|--eval|--print)$/ } as const),
  ...each("tsx ts-node", { language: "typescript", codeOption: /^(?:-e|--eval)$/ } as const),
};

const INSTALLS = rule("MEDIUM", "package-install", "brings packages of others onto the machine");
const UNREAD = rule("HIGH", "dynamic-code", "runs code in a language that is not looked at");
const RUNS = rule("HIGH", "dynamic-code", "makes another program run a command");
export const REVERSE_SHELL = rule("CRITICAL", "reverse-shell", "gives a shell to another machine");
const RECURSIVE_DELETION = rule("HIGH", "recursive-deletion", "deletes directories with everything in them");
export const DELETES_FOUND = rule("HIGH", "recursive-deletion", "deletes whatever is found");

/** The first argument that is no option. */
const subcommand = (names: string): RegExp => new RegExp(`^(?:-.*\\n)*(?:${names})(?:\\n|$)`);

/** Arguments that make the difference: of which command, what they look like, one in a line, and what that means. */
export const TELLING: readonly (readonly [command: RegExp, given: RegExp, rule: Rule])[] = [
  [/^rm$/, /^-[a-zA-Z]*[rR]|^--recursive$/m, RECURSIVE_DELETION],
  [/^find$/, /^-delete$/m, DELETES_FOUND],
  // Without anything to set or to run, they show all variables.
  [/^(?:env|set)$/, /^(?:-[0iv](?:\n|$))*$/, ENVIRONMENT],
  [/^chmod$/, /^[ugoa]*\+[rwx]*s|^0?[2467]\d{3}$/m, rule("HIGH", "privilege", "lets a program run as its owner")],
  [
    /^chmod$/,
    /^[ugoa]*\+[rwx]*x|^0?[0-7]*[1357][0-7]{0,2}$/m,
    rule("LOW", "makes-executable", "makes a file a program"),
  ],
  [/^(?:nc|ncat|netcat)$/, /^-\w*[ec]$|^--(?:sh-)?exec/m, REVERSE_SHELL],
  [/^socat$/, /EXEC:|SYSTEM:/i, REVERSE_SHELL],
  [/^ssh$/, /(?:Proxy|Local|Permit)\w*Command/i, RUNS],
  [/^tar$/, /^--(?:checkpoint-action|to-command|use-compress-program|rsh-command)|^-\w*[IF]$/m, RUNS],
  [/^[gm]?awk$/, /\bsystem\s*\(|\|\s*(?:getline|")|"\s*\|&?|@load/, RUNS],
  [/^sed$/, /(?:^|[;{}])\s*(?:\d+|\$|\/[^/\n]*\/)?(?:,(?:\d+|\$|\/[^/\n]*\/))?\s*!?e(?:\s|$)/m, RUNS],
  [/^sed$/, /^s(.).*\1[gimIMp0-9]*e/m, RUNS],
  [/^git$/, /^(?:-c|--config-env)$/m, RUNS],
  [/^git$/, /^(?:--upload-pack|--receive-pack|--exec|--exec-path)(?:=|$)/m, RUNS],
  [/^git$/, /^(?:push|pull|fetch|clone|remote|submodule|ls-remote|send-email)$/m, NETWORK],
  [/^git$/, /^clean$(?:.|\n)*^-\w*[fdxX]/m, RECURSIVE_DELETION],
  [/^git$/, /^reset$(?:.|\n)*^--hard$/m, rule("MEDIUM", "deletion", "discards changes that are not committed")],
  [/^git$/, subcommand("config"), rule("MEDIUM", "configuration", "changes what git does")],
  [/^python3?$/, /^(?:http\.server|smtpd|ftplib|socketserver)$/m, NETWORK],
  [/^python3?$/, /^-m\n(?:pip|ensurepip|venv)\n(?:install|download)$/m, INSTALLS],
  [/^perl$/, /^-[a-zA-Z]*[eE]/m, UNREAD],
  [/^(?:ruby|lua|osascript|Rscript|julia)$/, /^-[a-zA-Z]*e/m, UNREAD],
  [/^php$/, /^-[a-zA-Z]*r/m, UNREAD],
  [
    /^(?:npm|pnpm|yarn|bun)$/,
    subcommand("i|install|ci|add|update|up|upgrade|exec|x|dlx|link|rebuild|create|init"),
    INSTALLS,
  ],
  [/^(?:pip3?|pipx|uv)$/, subcommand("install|download|wheel|run|inject|pip|add|sync|tool"), INSTALLS],
  [/^(?:poetry|conda|cargo|go|gem|bundle|composer)$/, subcommand("install|add|update|create|get|require"), INSTALLS],
  [/^(?:brew|apt|apt-get|apk|dnf|yum)$/, subcommand("install|add|update|upgrade|remove|purge|del|tap"), INSTALLS],
  [/^pacman$/, /^-[SUR]/m, INSTALLS],
];

/** Options that take a path, which they read or write. */
export const PATH_OPTIONS: readonly (readonly [command: RegExp, given: RegExp, use: PathUse])[] = [
  [/^dd$/, /^of=(.*)$/gm, "write"],
  [/^dd$/, /^if=(.*)$/gm, "read"],
  [/^curl$/, /^(?:-o|--output|-D|-c)\n(.*)$/gm, "write"],
  [/^wget$/, /^(?:-O|--output-document|-P)\n(.*)$/gm, "write"],
  [/^tar$/, /^(?:-C|--directory)\n(.*)$/gm, "write"],
];

/** What commands use their path arguments for. Others read. */
export const PATH_ARGUMENTS: Readonly<Record<string, { readonly use: PathUse; readonly which: "all" | "last" }>> = {
  ...each("rm unlink rmdir shred truncate", { use: "delete", which: "all" } as const),
  ...each("cp mv ln install rsync scp", { use: "write", which: "last" } as const),
  ...each("tee touch mkdir chmod chown chgrp mkfifo patch", { use: "write", which: "all" } as const),
};

/** Commands whose first word that is no option is a pattern or a program, not a path. */
export const FIRST_IS_TEXT: ReadonlySet<string> = new Set(
  "grep egrep fgrep rg ag sed awk gawk mawk jq yq tr echo printf expr perl test [ git npm seq date export".split(" "),
);

/** Commands that make readable text of unreadable text, with the arguments that tell so; an empty one: in any case. */
export const DECODERS: Readonly<Record<string, RegExp>> = {
  ...each("base64 base32 basenc", /^(?:-[a-zA-Z]*[dD]|--decode)/),
  ...each("gzip xz bzip2", /^-[a-z]*d/),
  ...each("gunzip zcat uudecode rev tac tr", /^/),
  xxd: /^-[a-z]*r/,
  openssl: /^(?:enc|base64|-d|aes)/,
  printf: /\\(?:x|[0-7]{2}|u)/,
};

/** Variables that change what other programs do → how bad it is to set them. */
export const GOVERNING_VARIABLES = ruleTable(`
  HIGH governing-variable: sets a variable that makes other programs run code
    LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT BASH_ENV ENV PROMPT_COMMAND PS0 PS1 PS2 PS3 PS4 SHELLOPTS BASHOPTS
    NODE_OPTIONS PYTHONSTARTUP PERL5OPT RUBYOPT JAVA_TOOL_OPTIONS GIT_SSH_COMMAND GIT_SSH GIT_EXTERNAL_DIFF GIT_PAGER
    GIT_EDITOR PAGER MANPAGER LESSOPEN LESSCLOSE BROWSER DYLD_INSERT_LIBRARIES
  MEDIUM governing-variable: sets a variable that decides which programs are run
    PATH PYTHONPATH PYTHONHOME NODE_PATH HOME CDPATH EDITOR VISUAL SHELL
`);

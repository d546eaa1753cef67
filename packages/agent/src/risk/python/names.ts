import type { Rule } from "../findings.ts";
import type { PathUse } from "../places.ts";

const rule = (level: Rule["level"], pattern: string, reason: string): Rule => ({ level, pattern, reason });

const OPERATING_SYSTEM = rule("MEDIUM", "operating-system", "uses the operating system's interface");
const SUBPROCESS = rule("MEDIUM", "subprocess", "runs other programs");
const NETWORK = rule("MEDIUM", "network", "uses the network");
const ENVIRONMENT = rule("MEDIUM", "environment", "reads environment variables");
const DELETION = rule("MEDIUM", "deletion", "deletes files");
const KILLS = rule("HIGH", "process-control", "sends signals to processes");
const PRIVILEGE = rule("HIGH", "privilege", "changes who it runs as, or who may use a file");
const NATIVE = rule("HIGH", "native-code", "calls native code, past all that Python checks");
const DYNAMIC_IMPORT = rule("MEDIUM", "dynamic-import", "imports modules by name while running");
const DESERIALIZES = rule("MEDIUM", "deserialization", "unpacks data that can hold code");
const CODE_OBJECTS = rule("HIGH", "dynamic-code", "makes code from data");
const NAMESPACE = rule("MEDIUM", "namespace", "reaches names by text");
const INTERPRETER = rule("MEDIUM", "interpreter", "looks into the interpreter");
const FILES = rule("LOW", "files", "works with files");
const READS = rule("LOW", "file-read", "reads files");
const WRITES = rule("LOW", "file-write", "writes files");
const INPUT = rule("LOW", "input", "reads what is typed or piped in");
const CONCURRENCY = rule("LOW", "concurrency", "runs parts at the same time");

const each = (names: string, what: Rule): Record<string, Rule> =>
  Object.fromEntries(names.split(/\s+/).map((name) => [name, what]));

/** Qualified name → what to say of it. The longest listed beginning counts: "os.path.join" is under "os.path". */
export const NAME_RULES: Readonly<Record<string, Rule>> = {
  ...each("os posix nt", OPERATING_SYSTEM),
  ...each("os.path os.sep os.linesep os.curdir os.getcwd", FILES),
  ...each("os.environ os.environb os.getenv os.getenvb os.putenv os.unsetenv", ENVIRONMENT),
  ...each("os.system os.popen os.fork os.forkpty os.startfile pexpect sh plumbum invoke fabric", SUBPROCESS),
  ...each("os.execl os.execle os.execlp os.execlpe os.execv os.execve os.execvp os.execvpe", SUBPROCESS),
  ...each("os.spawnl os.spawnle os.spawnlp os.spawnv os.spawnve os.spawnvp os.posix_spawn os.posix_spawnp", SUBPROCESS),
  ...each("subprocess _posixsubprocess popen2 commands multiprocessing.Process", SUBPROCESS),
  ...each("asyncio.create_subprocess_exec asyncio.create_subprocess_shell", SUBPROCESS),
  ...each("os.kill os.killpg os.abort signal.pthread_kill psutil.Process", KILLS),
  ...each("os.setuid os.setgid os.seteuid os.setegid os.setreuid os.setresuid os.setgroups os.initgroups", PRIVILEGE),
  ...each("os.chroot os.chown os.lchown os.fchown os.setns os.unshare os.mknod shutil.chown", PRIVILEGE),
  ...each("os.remove os.unlink os.rmdir os.removedirs os.truncate", DELETION),
  "shutil.rmtree": rule("HIGH", "recursive-deletion", "deletes a directory with everything in it"),
  ...each("os.dup2 os.openpty", rule("MEDIUM", "descriptors", "rewires its input and output")),
  pty: rule("HIGH", "terminal", "opens a terminal for another program"),
  ...each("socket _socket ssl socketserver select selectors asyncore asynchat", NETWORK),
  ...each("asyncio.open_connection asyncio.start_server asyncio.open_unix_connection", NETWORK),
  ...each(
    "requests urllib urllib2 urllib3 http httpx aiohttp ftplib smtplib poplib imaplib telnetlib nntplib",
    NETWORK,
  ),
  ...each("xmlrpc websocket websockets paramiko pycurl grpc zmq scapy redis pymongo boto3 botocore twisted", NETWORK),
  ...each("psycopg psycopg2 mysql pymysql kafka pika webbrowser dns nmap playwright selenium", NETWORK),
  ...each("google.cloud azure openai anthropic tweepy slack_sdk telegram discord flask fastapi uvicorn", NETWORK),
  ...each("urllib.parse http.HTTPStatus ssl.OPENSSL_VERSION", FILES),
  ...each("dotenv decouple", ENVIRONMENT),
  ...each("ctypes _ctypes cffi", NATIVE),
  docker: rule("HIGH", "privilege", "controls containers of the host"),
  ...each("importlib imp pkgutil zipimport", DYNAMIC_IMPORT),
  ...each("importlib.metadata importlib.resources", FILES),
  ...each("runpy code codeop", CODE_OBJECTS),
  ...each("builtins.__import__", DYNAMIC_IMPORT),
  ...each("builtins.eval builtins.exec builtins.compile builtins.execfile", CODE_OBJECTS),
  builtins: rule("MEDIUM", "namespace", "takes the builtin functions by name"),
  ...each(
    "pickle cPickle _pickle dill cloudpickle shelve joblib jsonpickle torch.load numpy.load yaml.load",
    DESERIALIZES,
  ),
  marshal: CODE_OBJECTS,
  ...each("types.FunctionType types.CodeType types.LambdaType", CODE_OBJECTS),
  ...each(
    "builtins.getattr builtins.setattr builtins.delattr builtins.vars builtins.globals builtins.locals",
    NAMESPACE,
  ),
  ...each("operator.attrgetter operator.methodcaller inspect.getattr_static", NAMESPACE),
  ...each("builtins.breakpoint builtins.help pdb bdb trace", INTERPRETER),
  ...each(
    "sys.modules sys.settrace sys.setprofile sys.meta_path sys.path_hooks sys.addaudithook sys._getframe",
    INTERPRETER,
  ),
  ...each("sys._current_frames sys.path sys.exc_info gc faulthandler tracemalloc inspect.currentframe", INTERPRETER),
  ...each("inspect.stack atexit site sitecustomize", INTERPRETER),
  ...each("typing.get_type_hints functools.singledispatch builtins.__build_class__ builtins.__loader__", INTERPRETER),
  ...each("builtins.open io.open io.FileIO codecs.open tarfile zipfile gzip.open bz2.open lzma.open fileinput", FILES),
  ...each("pathlib shutil tempfile glob fnmatch linecache sqlite3 dbm mmap filecmp", FILES),
  ...each("json.load tomllib configparser", READS),
  ...each("signal fcntl termios resource pwd grp getpass platform sched ptrace syslog", OPERATING_SYSTEM),
  ...each("multiprocessing concurrent threading _thread asyncio queue", CONCURRENCY),
  ...each("builtins.input sys.stdin sys.argv argparse optparse getopt click typer", INPUT),
  ...each("logging unittest doctest pytest warnings inspect timeit cProfile profile pstats", FILES),
};

/** Methods whose name tells enough, whatever they are called on. */
export const METHOD_RULES: Readonly<Record<string, Rule>> = {
  ...each("unlink rmdir", DELETION),
  ...each("rmtree", rule("HIGH", "recursive-deletion", "deletes a directory with everything in it")),
  ...each("write_text write_bytes savefig to_csv to_json to_excel to_parquet", WRITES),
  ...each("read_text read_bytes", READS),
  ...each("sendall recvfrom create_connection urlopen", NETWORK),
};

/** Calls that run a command line, or a program with arguments. */
export const SHELL_CALLS: ReadonlySet<string> = new Set(
  `os.system os.popen subprocess.run subprocess.call subprocess.check_call subprocess.check_output subprocess.Popen
   subprocess.getoutput subprocess.getstatusoutput asyncio.create_subprocess_shell asyncio.create_subprocess_exec
   pty.spawn pexpect.spawn pexpect.run os.execl os.execlp os.execv os.execvp os.spawnl os.spawnlp os.posix_spawn
   os.spawnv os.spawnvp commands.getoutput`.split(/\s+/),
);

/** Calls whose first argument is Python code. */
export const CODE_CALLS: ReadonlySet<string> = new Set([
  "builtins.eval",
  "builtins.exec",
  "builtins.compile",
  "builtins.execfile",
  "code.interact",
  "codeop.compile_command",
  "types.FunctionType",
  "types.CodeType",
  "marshal.loads",
  "pickle.loads",
  "timeit.timeit",
]);

/** Calls that take a path → which argument, and what for. */
export const PATH_CALLS: Readonly<Record<string, { readonly argument: number; readonly use: PathUse }>> = {
  ...paths("read", 0, "os.listdir os.scandir os.stat os.readlink os.walk os.open glob.glob pandas.read_csv io.FileIO"),
  ...paths("read", 0, "numpy.loadtxt shutil.copyfileobj os.chdir linecache.getline linecache.getlines sqlite3.connect"),
  ...paths("write", 0, "os.mkdir os.makedirs os.chmod os.utime os.truncate os.mkfifo shutil.unpack_archive"),
  ...paths("delete", 0, "os.remove os.unlink os.rmdir os.removedirs shutil.rmtree os.rename os.replace shutil.move"),
  ...paths("write", 1, "shutil.copyfile shutil.copytree os.link os.symlink"),
};

/** The same for methods of pathlib.Path: the path is the object. */
export const PATH_METHODS: Readonly<Record<string, PathUse>> = {
  read_text: "read",
  read_bytes: "read",
  iterdir: "read",
  glob: "read",
  rglob: "read",
  write_text: "write",
  write_bytes: "write",
  touch: "write",
  mkdir: "write",
  chmod: "write",
  symlink_to: "write",
  hardlink_to: "write",
  unlink: "delete",
  rmdir: "delete",
  rename: "write",
};

/** Two-path calls: what their second argument is used for. */
export const SECOND_PATH_CALLS: Readonly<Record<string, PathUse>> = {
  "shutil.copy": "write",
  "shutil.copy2": "write",
  "shutil.move": "write",
  "os.rename": "write",
  "os.replace": "write",
};

/** Functions that open a file as a mode says. */
export const OPENING: ReadonlySet<string> = new Set([
  "builtins.open",
  "io.open",
  "codecs.open",
  "gzip.open",
  "io.FileIO",
]);

/** What makes readable text of unreadable text. */
export const DECODERS: ReadonlySet<string> = new Set(
  `base64.b64decode base64.b32decode base64.b16decode base64.b85decode base64.a85decode base64.decodebytes
   base64.urlsafe_b64decode base64.standard_b64decode binascii.unhexlify binascii.a2b_hex binascii.a2b_base64
   zlib.decompress gzip.decompress bz2.decompress lzma.decompress codecs.decode codecs.getdecoder marshal.loads
   pickle.loads builtins.chr builtins.bytes.fromhex builtins.bytearray.fromhex builtins.bytearray builtins.reversed
   urllib.parse.unquote html.unescape quopri.decodestring cryptography.fernet.Fernet`.split(/\s+/),
);

/** Attributes that lead out of every sandbox made of Python. */
export const ESCAPES: ReadonlySet<string> = new Set(
  `__class__ __base__ __bases__ __mro__ __subclasses__ __globals__ __builtins__ __code__ __closure__ __getattribute__
   __reduce__ __reduce_ex__ __loader__ __spec__ __self__ __func__ __wrapped__ __match_args__ __dict__
   gi_frame gi_code cr_frame cr_code ag_frame ag_code f_back f_globals f_locals f_builtins f_code tb_frame tb_next
   co_code co_consts func_globals func_code im_func mro __traceback__ __context__ __annotations__`.split(/\s+/),
);

/** Of those, the ones that plain programs use too. */
export const MILD_ESCAPES: ReadonlySet<string> = new Set(
  `__class__ __dict__ __wrapped__ __self__ __func__ mro __mro__ __bases__ __annotations__ __traceback__ __context__
   __spec__`.split(/\s+/),
);

function paths(use: PathUse, argument: number, names: string): Record<string, { argument: number; use: PathUse }> {
  return Object.fromEntries(names.split(/\s+/).map((name) => [name, { argument, use }]));
}

import { each, ruleTable } from "../findings.ts";
import type { PathUse } from "../places.ts";

/** Qualified name → what to say of it. The longest listed beginning counts: "os.path.join" is under "os.path". */
export const NAME_RULES = ruleTable(`
  MEDIUM operating-system: uses the operating system's interface
    os posix nt signal fcntl termios resource pwd grp getpass platform sched ptrace syslog
  LOW files: works with files
    os.path os.sep os.linesep os.curdir os.getcwd urllib.parse http.HTTPStatus importlib.metadata importlib.resources
  MEDIUM environment: reads environment variables
    os.environ os.environb os.getenv os.getenvb os.putenv os.unsetenv dotenv decouple
  MEDIUM subprocess: runs other programs
    os.system os.popen os.fork os.forkpty os.startfile pexpect sh plumbum invoke fabric os.execl os.execle os.execlp
    os.execlpe os.execv os.execve os.execvp os.execvpe os.spawnl os.spawnle os.spawnlp os.spawnv os.spawnve os.spawnvp
    os.posix_spawn os.posix_spawnp subprocess _posixsubprocess popen2 commands multiprocessing.Process
    asyncio.create_subprocess_exec asyncio.create_subprocess_shell
  HIGH process-control: sends signals to processes
    os.kill os.killpg os.abort signal.pthread_kill psutil.Process
  HIGH privilege: changes who it runs as, or who may use a file
    os.setuid os.setgid os.seteuid os.setegid os.setreuid os.setresuid os.setgroups os.initgroups os.chroot os.chown
    os.lchown os.fchown os.setns os.unshare os.mknod shutil.chown
  MEDIUM deletion: deletes files
    os.remove os.unlink os.rmdir os.removedirs os.truncate
  HIGH recursive-deletion: deletes a directory with everything in it
    shutil.rmtree
  MEDIUM descriptors: rewires its input and output
    os.dup2 os.openpty
  HIGH terminal: opens a terminal for another program
    pty
  MEDIUM network: uses the network
    socket _socket ssl socketserver select selectors asyncore asynchat asyncio.open_connection asyncio.start_server
    asyncio.open_unix_connection requests urllib urllib2 urllib3 http httpx aiohttp ftplib smtplib poplib imaplib
    telnetlib nntplib xmlrpc websocket websockets paramiko pycurl grpc zmq scapy redis pymongo boto3 botocore twisted
    psycopg psycopg2 mysql pymysql kafka pika webbrowser dns nmap playwright selenium google.cloud azure openai
    anthropic tweepy slack_sdk telegram discord flask fastapi uvicorn
  HIGH native-code: calls native code, past all that Python checks
    ctypes _ctypes cffi
  HIGH privilege: controls containers of the host
    docker
  MEDIUM dynamic-import: imports modules by name while running
    importlib imp pkgutil zipimport builtins.__import__
  HIGH dynamic-code: makes code from data
    runpy code codeop builtins.eval builtins.exec builtins.compile builtins.execfile marshal types.FunctionType
    types.CodeType types.LambdaType
  MEDIUM namespace: takes the builtin functions by name
    builtins
  MEDIUM deserialization: unpacks data that can hold code
    pickle cPickle _pickle dill cloudpickle shelve joblib jsonpickle torch.load numpy.load yaml.load
  MEDIUM namespace: reaches names by text
    builtins.getattr builtins.setattr builtins.delattr builtins.vars builtins.globals builtins.locals
    operator.attrgetter operator.methodcaller inspect.getattr_static
  MEDIUM interpreter: looks into the interpreter
    builtins.breakpoint builtins.help pdb bdb trace sys.modules sys.settrace sys.setprofile sys.meta_path
    sys.path_hooks sys.addaudithook sys._getframe sys._current_frames sys.path sys.exc_info gc faulthandler
    tracemalloc inspect.currentframe inspect.stack atexit site sitecustomize typing.get_type_hints
    functools.singledispatch builtins.__build_class__ builtins.__loader__
`);

/** Methods whose name tells enough, whatever they are called on. */
export const METHOD_RULES = ruleTable(`
  MEDIUM deletion: deletes files
    unlink rmdir
  HIGH recursive-deletion: deletes a directory with everything in it
    rmtree
  MEDIUM network: uses the network
    sendall recvfrom create_connection urlopen
`);

/** Calls that run a program. */
export const SHELL_CALLS: Readonly<Record<string, "line" | "words">> = {
  ...each(
    `os.system os.popen subprocess.run subprocess.call subprocess.check_call subprocess.check_output subprocess.Popen
     subprocess.getoutput subprocess.getstatusoutput asyncio.create_subprocess_shell pty.spawn pexpect.spawn pexpect.run
     commands.getoutput`,
    "line",
  ),
  ...each(
    `os.execl os.execlp os.execv os.execvp os.spawnl os.spawnlp os.spawnv os.spawnvp os.posix_spawn
     asyncio.create_subprocess_exec`,
    "words",
  ),
};

/** Calls whose first argument is code. */
export const CODE_CALLS: Readonly<Record<string, "first">> = each(
  `builtins.eval builtins.exec builtins.compile builtins.execfile code.interact codeop.compile_command
   types.FunctionType types.CodeType pickle.loads`,
  "first",
);

/** Calls that take paths → what each argument is used for. */
export const PATH_CALLS: Readonly<Record<string, readonly (PathUse | undefined)[]>> = {
  ...each("os.listdir os.scandir os.stat os.readlink os.walk os.open glob.glob pandas.read_csv io.FileIO", ["read"]),
  ...each("numpy.loadtxt shutil.copyfileobj os.chdir linecache.getline linecache.getlines sqlite3.connect", ["read"]),
  ...each("os.mkdir os.makedirs os.chmod os.utime os.truncate os.mkfifo shutil.unpack_archive", ["write"]),
  ...each("os.remove os.unlink os.rmdir os.removedirs shutil.rmtree", ["delete"]),
  ...each("shutil.copyfile shutil.copytree os.link os.symlink shutil.copy shutil.copy2", [undefined, "write"]),
  ...each("os.rename os.replace shutil.move", ["delete", "write"]),
};

/** The same for methods of pathlib.Path: the path is the object. */
export const PATH_METHODS: Readonly<Record<string, PathUse>> = {
  ...each("read_text read_bytes iterdir glob rglob", "read"),
  ...each("write_text write_bytes touch mkdir chmod symlink_to hardlink_to rename", "write"),
  ...each("unlink rmdir", "delete"),
};

/** Functions that open a file as a mode says. */
export const OPENING: ReadonlySet<string> = new Set("builtins.open io.open codecs.open gzip.open io.FileIO".split(" "));

/** What makes readable text of unreadable text. */
export const DECODERS: ReadonlySet<string> = new Set(
  `base64.b64decode base64.b32decode base64.b16decode base64.b85decode base64.a85decode base64.decodebytes
   base64.urlsafe_b64decode base64.standard_b64decode binascii.unhexlify binascii.a2b_hex binascii.a2b_base64
   zlib.decompress gzip.decompress bz2.decompress lzma.decompress codecs.decode codecs.getdecoder marshal.loads
   pickle.loads builtins.chr builtins.bytes.fromhex builtins.bytearray.fromhex builtins.bytearray builtins.reversed
   urllib.parse.unquote html.unescape quopri.decodestring cryptography.fernet.Fernet`.split(/\s+/),
);

/** Attributes that lead out of every sandbox made of Python; plain programs use some of them too. */
export const ESCAPES = ruleTable(`
  CRITICAL escape: reaches into the interpreter
    __base__ __subclasses__ __globals__ __builtins__ __code__ __closure__ __getattribute__ __reduce__ __reduce_ex__
    __loader__ __match_args__ gi_frame gi_code cr_frame cr_code ag_frame ag_code f_back f_globals f_locals f_builtins
    f_code tb_frame tb_next co_code co_consts func_globals func_code im_func
  MEDIUM escape: reaches into the interpreter
    __class__ __dict__ __wrapped__ __self__ __func__ mro __mro__ __bases__ __annotations__ __traceback__ __context__
    __spec__
  MEDIUM unwrapped-stream: takes the file out of a stream
    raw detach
`);

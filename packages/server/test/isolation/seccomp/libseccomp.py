# Reads a Docker seccomp profile, hands its rules to libseccomp as runc does, and writes the filter that comes out.
# Names this libseccomp does not know are left out, as runc leaves them out; they are printed as JSON.
import ctypes, ctypes.util, json, os, sys

library = ctypes.CDLL(ctypes.util.find_library("seccomp") or "libseccomp.so.2")


class Comparison(ctypes.Structure):
    _fields_ = [
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("mask", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
    ]


MASKED_EQ = 7
ALLOW = 0x7FFF0000
ERRNO = 0x00050000
UNKNOWN_NAME = -1

library.seccomp_init.restype = ctypes.c_void_p
library.seccomp_init.argtypes = [ctypes.c_uint32]
library.seccomp_rule_add_array.argtypes = [
    ctypes.c_void_p,
    ctypes.c_uint32,
    ctypes.c_int,
    ctypes.c_uint,
    ctypes.POINTER(Comparison),
]
library.seccomp_export_bpf.argtypes = [ctypes.c_void_p, ctypes.c_int]

profile_path, filter_path = sys.argv[1:]
with open(profile_path) as file:
    profile = json.load(file)

context = library.seccomp_init(ERRNO | profile["defaultErrnoRet"])
unknown = []
for rule in profile["syscalls"]:
    action = ALLOW if rule["action"] == "SCMP_ACT_ALLOW" else ERRNO | rule["errnoRet"]
    conditions = [
        Comparison(one["index"], MASKED_EQ, one["value"], one["valueTwo"])
        for one in rule.get("args", [])
    ]
    for name in rule["names"]:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number == UNKNOWN_NAME:
            unknown.append(name)
            continue
        array = (Comparison * len(conditions))(*conditions)
        code = library.seccomp_rule_add_array(context, action, number, len(conditions), array)
        if code != 0:
            sys.exit(f"{name}: {os.strerror(-code)}")

with open(filter_path, "wb") as file:
    code = library.seccomp_export_bpf(context, file.fileno())
if code != 0:
    sys.exit(os.strerror(-code))
json.dump(unknown, sys.stdout)

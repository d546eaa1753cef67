"""Compares the contract of the earlier client's generated code with a descriptor set of ours.

Prints one line per difference: whatever that client sends or reads must have the same name, number, type and label.
"""

import importlib
import pkgutil
import sys

from google.protobuf import descriptor_pb2

import agentfense._gen as generated


def earlier_files():
    for module in pkgutil.walk_packages(generated.__path__, "agentfense._gen."):
        if module.name.endswith("_pb2"):
            descriptor = importlib.import_module(module.name).DESCRIPTOR
            if descriptor.package == "sandbox.v1":
                proto = descriptor_pb2.FileDescriptorProto()
                descriptor.CopyToProto(proto)
                yield proto


def messages(file):
    def walk(prefix, types):
        for message in types:
            name = f"{prefix}.{message.name}"
            yield name, message
            yield from walk(name, message.nested_type)

    yield from walk(file.package, file.message_type)


def enums(file):
    for enum in file.enum_type:
        yield f"{file.package}.{enum.name}", enum
    for name, message in messages(file):
        for enum in message.enum_type:
            yield f"{name}.{enum.name}", enum


def main(path):
    with open(path, "rb") as stream:
        ours = descriptor_pb2.FileDescriptorSet.FromString(stream.read()).file
    our_messages = {name: message for file in ours for name, message in messages(file)}
    our_enums = {name: enum for file in ours for name, enum in enums(file)}
    our_methods = {
        (f"{file.package}.{service.name}", method.name): method
        for file in ours
        for service in file.service
        for method in service.method
    }
    compared = 0
    for file in earlier_files():
        for name, message in messages(file):
            known = {field.name: field for field in our_messages[name].field} if name in our_messages else {}
            for field in message.field:
                compared += 1
                other = known.get(field.name)
                same = other is not None and all(
                    getattr(field, part) == getattr(other, part)
                    for part in ("number", "type", "label", "type_name")
                )
                if not same:
                    print(f"field {name}.{field.name}")
        for name, enum in enums(file):
            known = {value.name: value.number for value in our_enums[name].value} if name in our_enums else {}
            for value in enum.value:
                compared += 1
                if known.get(value.name) != value.number:
                    print(f"enum value {name}.{value.name}")
        for service in file.service:
            for method in service.method:
                compared += 1
                other = our_methods.get((f"{file.package}.{service.name}", method.name))
                same = other is not None and all(
                    getattr(method, part) == getattr(other, part)
                    for part in ("input_type", "output_type", "client_streaming", "server_streaming")
                )
                if not same:
                    print(f"method {service.name}.{method.name}")
    print(f"compared {compared}")


main(sys.argv[1])

"""Protobuf: text or a base64 FileDescriptorProto in, canonical text and rules out."""

from strandline.registry.formats.protobuf.parsed import ProtobufSchema

__all__ = ["ProtobufSchema"]

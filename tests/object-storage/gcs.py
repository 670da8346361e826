"""A small Google Cloud Storage server for the tests, written from the public reference.

It supports the parts of the XML API that object storage clients use (objects, conditions, ranges, lists,
multipart uploads; https://cloud.google.com/storage/docs/xml-api/reference-methods), and the parts of the JSON
API that Google's client needs to read and write (https://cloud.google.com/storage/docs/json_api).
Requests to the XML API need a self-signed JWT of the service account. Its signature and times are checked.
"""

import base64
import hashlib
import json
import re
import threading
import time
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import uuid4
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

SMALLEST_PART = 5 << 20
EMAIL = "lake@tests.example"


@dataclass
class Object:
    body: bytes
    headers: dict
    etag: str
    parts: int = 0
    generation: int = field(default_factory=time.time_ns)
    updated: float = field(default_factory=time.time)


@dataclass
class Upload:
    key: str
    headers: dict
    parts: dict = field(default_factory=dict)
    initiated: float = field(default_factory=time.time)


@dataclass
class Bucket:
    objects: dict = field(default_factory=dict)
    uploads: dict = field(default_factory=dict)


class Refused(Exception):
    def __init__(self, status, code, message):
        self.status, self.code, self.message = status, code, message


class Store:
    """The buckets of the server, and the key of the only account with access."""

    def __init__(self):
        self.buckets, self.lock, self.log = {}, threading.Lock(), []
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def account(self):
        """Returns the content of the file for `GOOGLE_APPLICATION_CREDENTIALS`."""
        pem = self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                     serialization.NoEncryption()).decode()
        return {"type": "service_account", "private_key": pem, "private_key_id": "1", "client_email": EMAIL}

    def check(self, authorization):
        denied = Refused(401, "AuthenticationRequired", "Authentication required.")
        scheme, _, token = (authorization or "").partition(" ")
        if scheme != "Bearer" or token.count(".") != 2:
            raise denied
        signed, _, signature = token.rpartition(".")
        decode = lambda text: base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        try:
            self.key.public_key().verify(decode(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            raise denied
        claims = json.loads(decode(signed.partition(".")[2]))
        if claims["iss"] != EMAIL or not claims["iat"] - 60 <= time.time() < claims["exp"]:
            raise denied

    def bucket(self, name):
        if name not in self.buckets:
            raise Refused(404, "NoSuchBucket", "The specified bucket does not exist.")
        return self.buckets[name]


def kept(headers):
    """Returns the headers that are stored with an object."""
    names = ("content-type", "content-encoding", "content-disposition", "cache-control")
    return {name.lower(): value for name, value in headers.items()
            if name.lower() in names or name.lower().startswith("x-goog-meta-")}


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(seconds))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: Store

    def log_message(self, *_):
        pass

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def answer(self, status, body=b"", content_type="application/xml; charset=UTF-8", **headers):
        body = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        headers.setdefault("Content-Length", str(len(body)))
        if body or self.command == "HEAD":
            headers.setdefault("Content-Type", content_type)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def serve(self):
        length = int(self.headers.get("Content-Length") or 0)
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            return self.answer(411, "<Error><Code>MissingContentLength</Code></Error>")
        body = self.rfile.read(length)
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        try:
            with self.store.lock:
                self.store.log.append(f"{self.command} {self.path}")
                if parts.path.startswith(("/storage/v1/", "/download/storage/v1/", "/upload/storage/v1/")):
                    return self.json(parts.path, query, body)
                self.store.check(self.headers.get("Authorization"))
                bucket, _, key = parts.path.lstrip("/").partition("/")
                self.xml(self.store.bucket(unquote(bucket)), unquote(bucket), unquote(key), query, body)
        except Refused as refused:
            self.answer(refused.status, f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{refused.code}</Code>"
                        f"<Message>{escape(refused.message)}</Message></Error>")

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = serve

    def xml(self, bucket, name, key, query, body):
        match self.command, bool(key):
            case "GET", False if "uploads" in query:
                self.list_uploads(bucket, name, query)
            case "GET", False:
                self.list(bucket, name, query)
            case "GET", True if "uploadId" in query:
                self.list_parts(self.upload(bucket, key, query))
            case ("GET" | "HEAD"), True:
                self.get(bucket, key)
            case "POST", True if "uploads" in query:
                bucket.uploads[(id := uuid4().hex)] = Upload(key, kept(self.headers))
                self.answer(200, f"<InitiateMultipartUploadResult><Bucket>{name}</Bucket><Key>{escape(key)}</Key>"
                            f"<UploadId>{id}</UploadId></InitiateMultipartUploadResult>")
            case "POST", True if "uploadId" in query:
                self.complete(bucket, name, key, query["uploadId"], body)
            case "PUT", True if "partNumber" in query:
                etag = f'"{hashlib.md5(body).hexdigest()}"'
                self.upload(bucket, key, query).parts[int(query["partNumber"])] = (body, etag)
                self.answer(200, ETag=etag)
            case "PUT", True if not query:
                self.put(bucket, key, body)
            case "DELETE", True if "uploadId" in query:
                self.upload(bucket, key, query)
                del bucket.uploads[query["uploadId"]]
                self.answer(204)
            case "DELETE", True:
                if bucket.objects.pop(key, None) is None:
                    raise Refused(404, "NoSuchKey", "The specified key does not exist.")
                self.answer(204)
            case _:
                raise Refused(400, "InvalidArgument", f"{self.command} {self.path} is not known here.")

    def upload(self, bucket, key, query):
        upload = bucket.uploads.get(query["uploadId"])
        if upload is None or upload.key != key:
            raise Refused(404, "NoSuchUpload", "The requested upload was not found.")
        return upload

    def placed(self, bucket, key, found):
        condition = self.headers.get("x-goog-if-generation-match")
        old = bucket.objects.get(key)
        if condition is not None and int(condition) != (old.generation if old else 0):
            raise Refused(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold.")
        bucket.objects[key] = found
        return {"x_goog_generation": str(found.generation), "x_goog_metageneration": "1"}

    def put(self, bucket, key, body):
        found = Object(body, kept(self.headers), f'"{hashlib.md5(body).hexdigest()}"')
        self.answer(200, ETag=found.etag, **self.placed(bucket, key, found))

    def complete(self, bucket, name, key, id, body):
        upload = self.upload(bucket, key, {"uploadId": id})
        wanted = [(int(part.findtext("PartNumber")), part.findtext("ETag")) for part in ElementTree.fromstring(body)]
        if wanted != sorted(wanted) or not wanted:
            raise Refused(400, "InvalidPartOrder", "The list of parts was not in ascending order.")
        for place, (number, etag) in enumerate(wanted):
            content, known = upload.parts.get(number, (b"", None))
            if known != etag:
                raise Refused(400, "InvalidPart", f"The part {number} was not found, or has another ETag.")
            if len(content) < SMALLEST_PART and place < len(wanted) - 1:
                raise Refused(400, "EntityTooSmall", "Your proposed upload is smaller than the minimum object size.")
        content = b"".join(upload.parts[number][0] for number, _ in wanted)
        etag = f'"{hashlib.md5(content).hexdigest()}-{len(wanted)}"'
        found = Object(content, upload.headers, etag, len(wanted))
        headers = self.placed(bucket, key, found)
        del bucket.uploads[id]
        self.answer(200, f"<CompleteMultipartUploadResult><Bucket>{name}</Bucket><Key>{escape(key)}</Key>"
                    f"<ETag>{escape(etag)}</ETag></CompleteMultipartUploadResult>", **headers)

    def get(self, bucket, key):
        found = bucket.objects.get(key)
        if found is None:
            raise Refused(404, "NoSuchKey", "The specified key does not exist.")
        if self.headers.get("If-Match") not in (None, found.etag):
            raise Refused(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold.")
        status, body, headers = 200, found.body, {}
        if wanted := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            first, last = int(wanted[1]), int(wanted[2] or len(body) - 1)
            if first >= len(body):
                raise Refused(416, "InvalidRange", "The requested range cannot be satisfied.")
            headers["Content-Range"] = f"bytes {first}-{min(last, len(body) - 1)}/{len(body)}"
            status, body = 206, body[first:last + 1]
        self.answer(status, body, ETag=found.etag, Last_Modified=formatdate(found.updated, usegmt=True),
                    x_goog_generation=str(found.generation), **found.headers, **headers)

    def list(self, bucket, name, query):
        if query.get("list-type") != "2":
            raise Refused(400, "InvalidArgument", "Only lists of version 2 are known here.")
        found = [(key, found) for key, found in sorted(bucket.objects.items())
                 if key.startswith(query.get("prefix", ""))]
        contents = "".join(f"<Contents><Key>{escape(key)}</Key><LastModified>{stamp(found.updated)}</LastModified>"
                           f"<ETag>{escape(found.etag)}</ETag><Size>{len(found.body)}</Size></Contents>"
                           for key, found in found)
        self.answer(200, f"<ListBucketResult><Name>{name}</Name><IsTruncated>false</IsTruncated>{contents}"
                    "</ListBucketResult>")

    def list_uploads(self, bucket, name, query):
        uploads = "".join(f"<Upload><Key>{escape(upload.key)}</Key><UploadId>{id}</UploadId>"
                          f"<StorageClass>STANDARD</StorageClass><Initiated>{stamp(upload.initiated)}</Initiated></Upload>"
                          for id, upload in bucket.uploads.items() if upload.key.startswith(query.get("prefix", "")))
        self.answer(200, f"<ListMultipartUploadsResult><Bucket>{name}</Bucket><IsTruncated>false</IsTruncated>{uploads}"
                    "</ListMultipartUploadsResult>")

    def list_parts(self, upload):
        parts = "".join(f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(etag)}</ETag><Size>{len(body)}</Size></Part>"
                        for number, (body, etag) in sorted(upload.parts.items()))
        self.answer(200, f"<ListPartsResult><IsTruncated>false</IsTruncated>{parts}</ListPartsResult>")

    def json(self, path, query, body):
        """Handles a request of Google's client to the JSON API."""
        def told(value, status=200):
            self.answer(status, json.dumps(value), "application/json")

        def resource(key, found):
            hashed = base64.b64encode(hashlib.md5(found.body).digest()).decode()
            return {"kind": "storage#object", "name": key, "size": str(len(found.body)), "md5Hash": hashed,
                    "generation": str(found.generation), "etag": found.etag, "updated": stamp(found.updated),
                    "contentType": found.headers.get("content-type"),
                    "contentEncoding": found.headers.get("content-encoding"),
                    "metadata": {name.removeprefix("x-goog-meta-"): value for name, value in found.headers.items()
                                 if name.startswith("x-goog-meta-")}}

        if path == "/storage/v1/b" and self.command == "POST":
            name = json.loads(body)["name"]
            self.store.buckets[name] = Bucket()
            return told({"kind": "storage#bucket", "name": name})
        found = re.fullmatch(r"(?:/download|/upload)?/storage/v1/b/([^/]+)/o(?:/(.+))?", path)
        bucket, key = self.store.buckets.get(found[1]), unquote(found[2] or "")
        if self.command == "POST" and bucket is not None:
            # Two parts: the metadata and the content.
            mark = re.search(r'boundary="?([^";]+)', self.headers["Content-Type"])[1].encode()
            _, first, second, _ = body.split(b"--" + mark)
            key = json.loads(first.partition(b"\r\n\r\n")[2])["name"]
            head, _, content = second.partition(b"\r\n\r\n")
            content = content.removesuffix(b"\r\n")
            kind = re.search(rb"content-type: *([^\r\n]+)", head, re.I)
            headers = {"content-type": kind[1].decode()} if kind else {}
            bucket.objects[key] = Object(content, headers, f'"{hashlib.md5(content).hexdigest()}"')
            return told(resource(key, bucket.objects[key]))
        if bucket is None or key and key not in bucket.objects:
            return told({"error": {"code": 404, "message": "Not Found"}}, 404)
        if self.command == "DELETE":
            del bucket.objects[key]
            return self.answer(204)
        if not key:
            return told({"kind": "storage#objects", "items": [resource(*item) for item in bucket.objects.items()]})
        if path.startswith("/download") or query.get("alt") == "media":
            hashed = base64.b64encode(hashlib.md5(bucket.objects[key].body).digest()).decode()
            return self.answer(200, bucket.objects[key].body, "application/octet-stream", X_Goog_Hash=f"md5={hashed}")
        told(resource(key, bucket.objects[key]))


def start():
    """Starts the server and returns its address and its store."""
    store = Store()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"store": store}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}", store

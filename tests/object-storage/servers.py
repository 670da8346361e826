"""Object storage servers for the tests, and independent clients to read from them.

Starts moto (S3), the server in `gcs.py` (Google) and, if its path is given as an argument, Azurite. Prints one line of
JSON with their addresses, answers each line of JSON on standard input with another, and stops all servers at
the end of the input. Reads with the clients of Amazon, Google and Microsoft.
"""

import base64
import json
import logging
import os
import re
import subprocess
import sys
import threading
import time

import boto3
import gcs
from azure.storage.blob import BlobServiceClient
from botocore.config import Config
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

logging.getLogger("werkzeug").setLevel(logging.ERROR)
ACCOUNT = "devstoreaccount1"
# The well-known key of Azurite, published by Microsoft.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class Front:
    def __init__(self, app):
        self.app, self.log, self.begun = app, [], {}

    def __call__(self, environ, start_response):
        method, query = environ["REQUEST_METHOD"], environ["QUERY_STRING"]
        self.log.append(f"{method} {environ['PATH_INFO']}?{query}")
        answer = self.app(environ, start_response)
        if "uploads" not in query:
            return answer
        # moto reports that every upload was started in 2010.
        body = b"".join(answer)
        if method == "POST":
            for id in re.findall(rb"<UploadId>([^<]+)<", body):
                self.begun[id] = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()).encode()
        else:
            uploads = [(id.group(), self.begun.get(id[1])) for id in re.finditer(rb"<UploadId>([^<]+)<", body)]
            for found, begun in uploads:
                head, tail = body.split(found)
                before, upload, after = head.rpartition(b"<Upload>")
                first, last = tail.split(b"</Upload>", 1)
                mend = lambda text: text.replace(b"2010-11-10T20:48:33.000Z", begun)
                body = before + upload + mend(after) + found + mend(first) + b"</Upload>" + last
        return [body]


def azurite(main):
    # Azurite prints its address when it is ready, and keeps everything in memory.
    child = subprocess.Popen(
        ["node", main, "--blobHost", "127.0.0.1", "--blobPort", "0", "--inMemoryPersistence", "--skipApiVersionCheck",
         "--disableTelemetry"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True)
    for line in child.stdout:
        found = re.search(r"listens on (http://127\.0\.0\.1:\d+)", line)
        if found:
            threading.Thread(target=child.stdout.read, daemon=True).start()
            return child, f"{found.group(1)}/{ACCOUNT}"
    raise SystemExit("Azurite does not say where it listens")


front = Front(DomainDispatcherApplication(create_backend_app))
server = make_server("127.0.0.1", 0, front, threaded=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
endpoint = f"http://127.0.0.1:{server.server_port}"
s3 = boto3.client("s3", endpoint_url=endpoint, aws_access_key_id="reader", aws_secret_access_key="reader",
                  region_name="us-east-1", config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 9}))
google_endpoint, google_store = gcs.start()
google_client = storage.Client(project="tests", credentials=AnonymousCredentials(),
                               client_options={"api_endpoint": google_endpoint})
child, azure_endpoint = azurite(sys.argv[1]) if len(sys.argv) > 1 else (None, None)
blobs = BlobServiceClient(azure_endpoint, credential=KEY) if azure_endpoint else None


def azure(ask):
    container = blobs.get_container_client(ask["bucket"])
    match ask["do"]:
        case "make":
            container.create_container()
        case "put":
            container.upload_blob(ask["key"], base64.b64decode(ask["body"]), overwrite=True)
        case "delete":
            container.delete_blob(ask["key"])
        case "get":
            return base64.b64encode(container.download_blob(ask["key"]).readall()).decode()
        case "list":
            return sorted(blob.name for blob in container.list_blobs())
        case "head":
            told = container.get_blob_client(ask["key"]).get_blob_properties().content_settings
            return [told.content_type, told.content_encoding]
        case "parts":
            return len(container.get_blob_client(ask["key"]).get_block_list("committed")[0])


def google(ask):
    bucket = google_client.bucket(ask["bucket"])
    match ask["do"]:
        case "make":
            bucket.create()
        case "put":
            bucket.blob(ask["key"]).upload_from_string(base64.b64decode(ask["body"]))
        case "delete":
            bucket.blob(ask["key"]).delete()
        case "get":
            return base64.b64encode(bucket.blob(ask["key"]).download_as_bytes(checksum="md5")).decode()
        case "list":
            return sorted(blob.name for blob in bucket.list_blobs())
        case "head":
            told = bucket.get_blob(ask["key"])
            return [told.content_type, told.content_encoding]
        case "begin":
            google_store.buckets[ask["bucket"]].uploads["theirs-" + ask["key"]] = upload = gcs.Upload(ask["key"], {})
            if ask["body"]:
                upload.parts[1] = (b"theirs", '"theirs"')
        case "uploads":
            return [upload.key for upload in google_store.buckets[ask["bucket"]].uploads.values()]
        case "parts":
            return google_store.buckets[ask["bucket"]].objects[ask["key"]].parts


def simple(ask):
    bucket = ask["bucket"]
    match ask["do"]:
        case "make":
            s3.create_bucket(Bucket=bucket)
        case "put":
            s3.put_object(Bucket=bucket, Key=ask["key"], Body=base64.b64decode(ask["body"]))
        case "delete":
            s3.delete_object(Bucket=bucket, Key=ask["key"])
        case "get":
            return base64.b64encode(s3.get_object(Bucket=bucket, Key=ask["key"])["Body"].read()).decode()
        case "list":
            return sorted(found["Key"] for found in s3.list_objects_v2(Bucket=bucket).get("Contents", []))
        case "begin":
            id = s3.create_multipart_upload(Bucket=bucket, Key=ask["key"])["UploadId"]
            if ask["body"]:
                s3.upload_part(Bucket=bucket, Key=ask["key"], UploadId=id, PartNumber=1, Body=b"theirs")
        case "uploads":
            return [found["Key"] for found in s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])]
        case "head":
            told = s3.head_object(Bucket=bucket, Key=ask["key"])
            return [told["ContentType"], told.get("ContentEncoding")]
        case "parts":
            tag = s3.head_object(Bucket=bucket, Key=ask["key"])["ETag"].strip('"')
            return int(tag.partition("-")[2] or 0)
        case "tls":
            secured = make_server("127.0.0.1", 0, front, threaded=True, ssl_context=(f"{ask['key']}.crt", f"{ask['key']}.key"))
            threading.Thread(target=secured.serve_forever, daemon=True).start()
            return f"https://localhost:{secured.server_port}"
        case "log":
            return [line for line in front.log if f"/{bucket}" in line]


providers = {"s3": simple, "gs": google, "az": azure}
print(json.dumps({"s3": endpoint, "google": google_endpoint, "google_account": google_store.account(), "azure": azure_endpoint, "account": ACCOUNT, "key": KEY}), flush=True)
try:
    for line in sys.stdin:
        ask = json.loads(line)
        try:
            answer = {"answer": providers[ask["provider"]](ask)}
        except Exception as error:
            answer = {"error": repr(error)}
        print(json.dumps(answer), flush=True)
finally:
    if child:
        child.kill()
    os._exit(0)

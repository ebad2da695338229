import type { OpfsHandle } from '../../src/opfs/opfs-files.ts';
import { decodeHead, encodeHead, HEAD_BYTES, LOOK_BYTES } from '../../src/opfs/record.ts';
import { serveOpfsPages } from '../../src/opfs/serve-opfs-pages.ts';

/**
 * The worker of the store, with a second way to the same files: what a bad disk does to them is done through the handles that the store
 * itself has open, since the browser lets nobody else have one.
 */
export type Tampering =
  | { readonly tamper: 'read'; readonly key: string }
  | { readonly tamper: 'write'; readonly key: string; readonly sealed: Uint8Array };

interface OpenFile {
  createSyncAccessHandle(): Promise<OpfsHandle>;
}

const open = new Set<OpfsHandle>();
const files = (globalThis as unknown as { FileSystemFileHandle: { prototype: OpenFile } }).FileSystemFileHandle.prototype;
const { createSyncAccessHandle } = files;
files.createSyncAccessHandle = async function (this: OpenFile) {
  const handle = await createSyncAccessHandle.call(this);
  open.add(handle);
  const close = handle.close.bind(handle);
  handle.close = () => {
    open.delete(handle);
    close();
  };
  return handle;
};

/** Where the page of a key is: the last record of that key which counts. */
function find(key: string) {
  for (const handle of open) {
    const look = new Uint8Array(LOOK_BYTES);
    for (let offset = 0; offset < handle.getSize(); ) {
      const head = decodeHead(look.subarray(0, handle.read(look, { at: offset })));
      if (head === null) break;
      const bytes = HEAD_BYTES + head.key.length + head.sealedBytes;
      if (head.key === key && head.isLive) return { handle, offset, bytes, sealedBytes: head.sealedBytes };
      offset += bytes;
    }
  }
  return undefined;
}

addEventListener('message', ({ data, ports }: MessageEvent<Tampering>) => {
  if (data?.tamper === undefined) return;
  const record = find(data.key);
  const at = record && record.offset + HEAD_BYTES + data.key.length;
  if (record === undefined || at === undefined) {
    ports[0].postMessage(null);
    return;
  }
  if (data.tamper === 'read') {
    const sealed = new Uint8Array(record.sealedBytes);
    record.handle.read(sealed, { at });
    ports[0].postMessage(sealed);
    return;
  }
  const { sealed } = data;
  if (sealed.length !== record.sealedBytes) {
    if (record.offset + record.bytes === record.handle.getSize()) record.handle.truncate(at);
    record.handle.write(encodeHead(data.key, sealed.length, 1), { at: record.offset });
  }
  record.handle.write(sealed, { at });
  ports[0].postMessage(null);
});

serveOpfsPages();

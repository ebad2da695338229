import { crc32c, keyToHex } from '@bufferwise/cache-manager/outside';
import type { ByteReader } from './byte-source.ts';
import { headerFields, type PlainHeader } from './header-fields.ts';
import { prefixGroup, totalsOf } from './prefix-blocks.ts';
import { damaged, PrefixFileError } from './prefix-file-error.ts';
import type { PrefixFileLimits, PrefixInfo } from './prefix-info.ts';

export const VERSION = 1;
const MAGIC = Uint8Array.from('BWPREFIX', (letter) => letter.charCodeAt(0));
const PREAMBLE_BYTES = 24;
const SUM_BYTES = 4;
/** What is parsed takes many times its bytes. */
const MAX_JSON_BYTES = 2 ** 21;

/**
 * What stands in front of the pages. Little endian:
 *
 * | bytes      | what                                                        |
 * | ---------- | ----------------------------------------------------------- |
 * | 0–7        | `BWPREFIX`                                                  |
 * | 8–11       | version of the form, 1                                      |
 * | 12–15      | bytes of the JSON                                           |
 * | 16–19      | tokens                                                      |
 * | 20–23      | CRC-32C of the 20 bytes before                              |
 * | 24–        | JSON in UTF-8, then the tokens, 4 bytes each                |
 * | the last 4 | CRC-32C of everything before                                |
 */
export function encodeHeader(info: PrefixInfo): Uint8Array {
  const { modelName, modelFingerprint, tokensPerBlock, loraId, salted, exact, compressed, key, tokens } = info;
  const digests = Array.from(tokens as ArrayLike<number | Uint8Array>).flatMap((token, i) =>
    typeof token === 'number' ? [] : [[i, keyToHex(token)] as const],
  );
  const groups = info.groups.map(({ lifecycle, layerIds, pageBytes, arrangement, form, numPages }) => ({
    lifecycle,
    layerIds,
    pageBytes,
    arrangement,
    form,
    included: numPages > 0,
  }));
  const header: PlainHeader = {
    modelName,
    modelFingerprint,
    tokensPerBlock,
    digests,
    loraId: loraId === null ? null : loraId.toString(),
    salted,
    exact,
    compressed,
    key,
    groups,
  };
  const json = new TextEncoder().encode(JSON.stringify(header));
  if (json.length > MAX_JSON_BYTES)
    throw new PrefixFileError(
      'prefix-file-too-large',
      `there is more to say of the prefix than the ${MAX_JSON_BYTES} bytes of a header: it has ${digests.length} digests; export a shorter one`,
    );
  const bytes = new Uint8Array(PREAMBLE_BYTES + json.length + 4 * tokens.length + SUM_BYTES);
  const view = new DataView(bytes.buffer);
  bytes.set(MAGIC);
  view.setUint32(8, VERSION, true);
  view.setUint32(12, json.length, true);
  view.setUint32(16, tokens.length, true);
  view.setUint32(20, crc32c(bytes.subarray(0, 20)), true);
  bytes.set(json, PREAMBLE_BYTES);
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i];
    view.setUint32(PREAMBLE_BYTES + json.length + 4 * i, typeof token === 'number' ? token : 0, true);
  }
  view.setUint32(bytes.length - SUM_BYTES, crc32c(bytes.subarray(0, -SUM_BYTES)), true);
  return bytes;
}

/**
 * Reads what stands in front of the pages, up to the first of them.
 *
 * @throws {PrefixFileError} `prefix-file-damaged`, `prefix-file-version`, `prefix-file-too-large`
 */
export async function readHeader(reader: ByteReader, limits: Required<PrefixFileLimits>): Promise<PrefixInfo> {
  const preamble = await reader.read(PREAMBLE_BYTES);
  if (preamble.length < PREAMBLE_BYTES || MAGIC.some((byte, i) => preamble[i] !== byte)) throw damaged('does not begin as one');
  const view = new DataView(preamble.buffer, preamble.byteOffset, PREAMBLE_BYTES);
  if (view.getUint32(20, true) !== crc32c(preamble.subarray(0, 20))) throw damaged('has a spoilt beginning');
  const version = view.getUint32(8, true);
  if (version !== VERSION)
    throw new PrefixFileError(
      'prefix-file-version',
      `the prefix file has version ${version}, and this reads ${VERSION}; export it anew, or take the version of the package that wrote it`,
    );
  const [jsonBytes, numTokens] = [view.getUint32(12, true), view.getUint32(16, true)];
  if (jsonBytes > MAX_JSON_BYTES) throw damaged(`says that its header has ${jsonBytes} bytes without tokens, more than any has,`);
  const restBytes = jsonBytes + 4 * numTokens + SUM_BYTES;
  if (PREAMBLE_BYTES + restBytes > limits.headerBytes)
    throw tooLarge('a header', PREAMBLE_BYTES + restBytes, 'headerBytes', limits.headerBytes);
  const rest = await reader.read(restBytes);
  if (rest.length < restBytes) throw damaged('ends inside of its header');
  const body = rest.subarray(0, -SUM_BYTES);
  const sum = new DataView(rest.buffer, rest.byteOffset + body.length).getUint32(0, true);
  if (sum !== crc32c(body, crc32c(preamble))) throw damaged('has a spoilt header');
  const info = infoOf(headerFields(body.subarray(0, jsonBytes), numTokens), body.subarray(jsonBytes));
  for (const { pageBytes } of info.groups)
    if (pageBytes > limits.pageBytes) throw tooLarge('pages', pageBytes, 'pageBytes', limits.pageBytes);
  if (info.pageBytes > limits.totalBytes) throw tooLarge('pages together', info.pageBytes, 'totalBytes', limits.totalBytes);
  return info;
}

function infoOf(header: PlainHeader, tokenBytes: Uint8Array): PrefixInfo {
  const { modelName, modelFingerprint, tokensPerBlock, digests, loraId, salted, exact, compressed, key } = header;
  const view = new DataView(tokenBytes.buffer, tokenBytes.byteOffset, tokenBytes.byteLength);
  const ids = Uint32Array.from({ length: tokenBytes.length / 4 }, (_, i) => view.getUint32(4 * i, true));
  const groups = header.groups.map(({ included, ...group }) => prefixGroup(group, included ? ids.length : 0, tokensPerBlock));
  return {
    version: VERSION,
    modelName,
    modelFingerprint,
    tokensPerBlock,
    tokens: digests.length === 0 ? ids : withDigests(ids, digests),
    loraId: loraId === null ? null : BigInt(loraId),
    salted,
    exact,
    compressed,
    key,
    groups,
    ...totalsOf(groups),
  };
}

function withDigests(ids: Uint32Array, digests: PlainHeader['digests']): (number | Uint8Array)[] {
  const tokens: (number | Uint8Array)[] = [...ids];
  for (const [position, digest] of digests)
    tokens[position] = Uint8Array.from({ length: digest.length / 2 }, (_, i) =>
      Number.parseInt(digest.slice(2 * i, 2 * i + 2), 16),
    );
  return tokens;
}

function tooLarge(what: string, bytes: number, limit: keyof PrefixFileLimits, most: number): PrefixFileError {
  return new PrefixFileError(
    'prefix-file-too-large',
    `the prefix file says that it has ${what} of ${bytes} bytes, and \`limits.${limit}\` is ${most}; raise it if you trust the file`,
  );
}

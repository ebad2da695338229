import { openSealedPage, SEAL_BYTES } from '@bufferwise/adapter-kit';
import { PageCodec } from '../encoding/page-codec.ts';
import type { ByteReader } from './byte-source.ts';
import { pagesOf, sealName } from './prefix-blocks.ts';
import { damaged } from './prefix-file-error.ts';
import type { PrefixInfo } from './prefix-info.ts';

/** A page of a file whose sum is right. */
export interface FilePage {
  /** Index into the groups of the file. */
  readonly group: number;
  readonly block: number;
  /** As `PageCodec` encoded it. */
  readonly encoded: Uint8Array;
}

/**
 * The pages of a file behind its header, in order; ends only when the file ends exactly behind the last.
 *
 * @throws {PrefixFileError} `prefix-file-damaged` at the first page that is not whole, and when there is something behind the last
 */
export async function* readPages(reader: ByteReader, info: PrefixInfo): AsyncGenerator<FilePage> {
  for (const page of pagesOf(info.groups)) {
    const where = `page of block ${page.block} of group ${page.group}, at byte ${reader.position}`;
    const seal = await reader.read(SEAL_BYTES);
    if (seal.length < SEAL_BYTES) throw damaged(`ends before the ${where}`);
    const length = new DataView(seal.buffer, seal.byteOffset, SEAL_BYTES).getUint32(8, true);
    if (length > PageCodec.maxBytes(info.groups[page.group].pageBytes)) throw damaged(`has a spoilt ${where}`);
    const bytes = await reader.read(length);
    if (bytes.length < length) throw damaged(`ends inside of the ${where}`);
    const sealed = new Uint8Array(SEAL_BYTES + length);
    sealed.set(seal);
    sealed.set(bytes, SEAL_BYTES);
    const encoded = openSealedPage(sealName(info.key, page), sealed);
    if (encoded === null) throw damaged(`has a spoilt ${where}`);
    yield { ...page, encoded };
  }
  if ((await reader.read(1)).length > 0) throw damaged(`goes on behind its last page, at byte ${reader.position - 1}`);
}

import type { HostPoolMemory, KvCache, KvCacheManager } from '@bufferwise/cache-manager';
import type { LayerGroupId } from '@bufferwise/core-policy';
import type { PageIndexConverter } from '@bufferwise/scratch-allocator';
import { type DecoderModel, KV_ELEMENT_BYTES, type KvTensor } from '../model/decoder-model.ts';

/** Where one tensor's pages are. */
interface TensorPages {
  readonly tensor: KvTensor;
  /** That of its layer: key and value share it. */
  readonly groupId: LayerGroupId;
  readonly converter: PageIndexConverter;
  readonly pageBytes: number;
  /** Bytes of one token of one head. */
  readonly rowBytes: number;
}

/** Copies rows of keys and values between pages, `[numKvHeads, tokensPerBlock, headDim]`, and tensors, `[1, numKvHeads, tokens, headDim]`. */
export class KvPages {
  readonly #manager: KvCacheManager;
  readonly #tensors: readonly TensorPages[];
  readonly #tokensPerBlock: number;

  /** @param manager one that `checkManager` let pass */
  constructor(manager: KvCacheManager, { kvTensors }: DecoderModel) {
    this.#manager = manager;
    this.#tokensPerBlock = manager.layout.tokensPerBlock;
    this.#tensors = kvTensors.map((tensor) => ({
      tensor,
      groupId: manager.getLayerGroupId(tensor.layerId),
      converter: manager.layout.pageIndexConverter(tensor.layerId, tensor.role),
      pageBytes: manager.layout.pageStride(tensor.layerId, tensor.role),
      rowBytes: tensor.headDim * KV_ELEMENT_BYTES[tensor.type],
    }));
  }

  /**
   * The rows of the first tokens, of every tensor by the name of its input. The arrays are the caller's.
   *
   * @param kvCache active
   * @param length tokens, all of them written
   */
  read(kvCache: KvCache, length: number): Map<string, Uint8Array> {
    return new Map(
      this.#tensors.map((pages) => {
        const rows = new Uint8Array(pages.tensor.numKvHeads * length * pages.rowBytes);
        this.#forEachRun(pages, kvCache, 0, length, length, (memory, inPage, inRows, bytes) => {
          rows.set(memory.subarray(inPage, inPage + bytes), inRows);
        });
        return [pages.tensor.past, rows];
      }),
    );
  }

  /**
   * Writes the rows of tokens `begin` to `end` into their pages.
   *
   * @param kvCache active, with room up to `end`, and nothing shared from `begin` on
   * @param rows    of every tensor by the name of its input, from token 0 on
   * @param length  tokens that `rows` has, at least `end`
   */
  write(kvCache: KvCache, begin: number, end: number, rows: ReadonlyMap<string, Uint8Array>, length: number): void {
    for (const pages of this.#tensors) {
      const source = rows.get(pages.tensor.past) as Uint8Array;
      this.#forEachRun(pages, kvCache, begin, end, length, (memory, inPage, inRows, bytes) => {
        memory.set(source.subarray(inRows, inRows + bytes), inPage);
      });
    }
  }

  /** Rows that lie side by side in a page and in the tensor: those of one head in one block. */
  #forEachRun(
    { tensor, groupId, converter, pageBytes, rowBytes }: TensorPages,
    kvCache: KvCache,
    begin: number,
    end: number,
    length: number,
    copy: (memory: Uint8Array, inPage: number, inRows: number, bytes: number) => void,
  ): void {
    const tokensPerBlock = this.#tokensPerBlock;
    const memory = (this.#manager.poolMemory(tensor.layerId, tensor.role) as HostPoolMemory).bytes;
    const firstBlock = Math.floor(begin / tokensPerBlock);
    const base = kvCache.basePageIndices(groupId).subarray(firstBlock, Math.ceil(end / tokensPerBlock));
    const pages = converter.convert(base, { indexMode: 'per_layer' });
    for (let token = begin; token < end; ) {
      const block = Math.floor(token / tokensPerBlock);
      const offset = token - block * tokensPerBlock;
      const count = Math.min(tokensPerBlock - offset, end - token);
      for (let head = 0; head < tensor.numKvHeads; head++) {
        const inPage = pages[block - firstBlock] * pageBytes + (head * tokensPerBlock + offset) * rowBytes;
        copy(memory, inPage, (head * length + token) * rowBytes, count * rowBytes);
      }
      token += count;
    }
  }
}

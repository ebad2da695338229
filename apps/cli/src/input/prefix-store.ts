import { type PageEncoding, PageStoreConnector } from '@bufferwise/adapter-connectors';
import { type EngineModel, modelFingerprint, type OutsideOptions } from '@bufferwise/hybrid-engine';
import { openPageStore, type PageStoreChoice } from '../store/open-page-store.ts';
import type { StoreAddress } from '../store/store-address.ts';

/** Prefixes of one model in a store. */
export interface PrefixStore extends OutsideOptions {
  readonly connector: PageStoreConnector;
  /** Says what is wrong with the store, when something is; the first time only. */
  trouble(): string | undefined;
  close(): Promise<void>;
}

/**
 * Opens a store that prefixes are kept in, for an engine with this model.
 *
 * @throws {CliError} when the store cannot be used: another process has the folder, it may not be written, a bucket has no keys
 */
export async function openPrefixStore(
  address: StoreAddress,
  choice: PageStoreChoice,
  model: EngineModel,
  encoding?: PageEncoding,
): Promise<PrefixStore> {
  const { store, trouble } = await openPageStore(address, choice);
  const connector = new PageStoreConnector(store, { encoding });
  let wasTold = false;
  return {
    connector,
    modelFingerprint: modelFingerprint(model),
    trouble() {
      const words = wasTold ? undefined : trouble();
      wasTold ||= words !== undefined;
      return words;
    },
    async close() {
      await connector.close();
      await store.close();
    },
  };
}

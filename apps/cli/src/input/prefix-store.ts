import { type PageEncoding, PageStoreConnector } from '@bufferwise/adapter-connectors';
import { FilePageStore } from '@bufferwise/adapter-connectors/file-store';
import { type EngineModel, modelFingerprint, type OutsideOptions } from '@bufferwise/hybrid-engine';
import { CliError } from '../cli-error.ts';

/** Prefixes of one model in a folder. */
export interface PrefixStore extends OutsideOptions {
  readonly connector: PageStoreConnector;
  close(): Promise<void>;
}

/**
 * Opens a folder that prefixes are kept in, for an engine with this model.
 *
 * @throws {CliError} when the folder cannot be used: another process has it, or it may not be written
 */
export async function openPrefixStore(
  folder: string,
  quotaBytes: number,
  model: EngineModel,
  encoding?: PageEncoding,
): Promise<PrefixStore> {
  const store = await FilePageStore.open(folder, { quotaBytes }).catch((error: Error) => {
    throw new CliError(`--store ${folder} cannot be used: ${error.message}`);
  });
  const connector = new PageStoreConnector(store, { encoding });
  return {
    connector,
    modelFingerprint: modelFingerprint(model),
    async close() {
      await connector.close();
      await store.close();
    },
  };
}

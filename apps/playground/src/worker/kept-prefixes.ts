import { PageStoreConnector } from '@bufferwise/adapter-connectors';
import { openBrowserStore } from '@bufferwise/adapter-connectors/browser-store';
import type { PageKey, PageStore } from '@bufferwise/adapter-kit';
import { type HybridModel, modelFingerprint, type OutsideOptions } from '@bufferwise/hybrid-engine';

/** Prefixes of one model that are kept beyond a reload of the page. */
export interface KeptPrefixes extends OutsideOptions {
  /** Forgets all of them. */
  forget(): Promise<void>;
}

const QUOTA_BYTES = 256 * 2 ** 20;

/**
 * Opens what earlier visits have left in this browser. Files are closed by the browser when the page goes.
 *
 * @returns the reason, for people, where nothing can be kept
 */
export async function openKeptPrefixes(model: HybridModel): Promise<KeptPrefixes | string> {
  try {
    const { store } = await openBrowserStore({ name: 'bufferwise-playground', quotaBytes: QUOTA_BYTES });
    return {
      connector: new PageStoreConnector(store),
      modelFingerprint: modelFingerprint(model),
      async forget() {
        // A piece at a time from the beginning: what was listed is gone the next time.
        for (let keys = await firstKeys(store); keys.length > 0; keys = await firstKeys(store)) await store.delete(keys);
      },
    };
  } catch (error) {
    return `This browser keeps nothing for this page: ${error instanceof Error ? error.message : String(error)}`;
  }
}

async function firstKeys(store: PageStore): Promise<readonly PageKey[]> {
  return (await store.list?.())?.keys ?? [];
}

import { type DBSchema, type IDBPDatabase, type IDBPTransaction, openDB } from 'idb';
import { ConnectorError } from '../errors.ts';

/** What is known of a page without a look at it. */
export interface PageNote {
  /** With all that the store adds. */
  readonly bytes: number;
  /** When it was stored or given out last, in milliseconds. */
  readonly usedAt: number;
}

/** Version 1 of the form of the database. */
interface Schema extends DBSchema {
  /** Sealed pages. */
  pages: { key: string; value: Uint8Array };
  notes: { key: string; value: PageNote; indexes: { usedAt: number } };
  /** The bytes of all pages, under `usedBytes`: whoever changes pages changes it in the same transaction. */
  totals: { key: string; value: number };
}

const STORES = ['pages', 'notes', 'totals'] as const;

/** A transaction in which pages change. */
export type PageChanges = IDBPTransaction<Schema, typeof STORES, 'readwrite'>;

/** A connection, which is made anew when the browser has closed it. */
export class PageDatabase {
  readonly #name: string;
  #connection: Promise<IDBPDatabase<Schema>> | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  /** Rejects with {ConnectorError} `no-indexeddb` where there is none, or the browser does not let it be used. */
  connection(): Promise<IDBPDatabase<Schema>> {
    if (this.#connection === undefined) {
      const connection = this.#connect();
      this.#connection = connection;
      connection.catch(() => this.#forget(connection));
    }
    return this.#connection;
  }

  /**
   * Runs a change: all of it happens, or nothing. Rejects with what the browser says.
   *
   * @param change waits for nothing but its transaction
   */
  async change<T>(change: (changes: PageChanges) => Promise<T>): Promise<T> {
    const changes = (await this.connection()).transaction(STORES, 'readwrite', { durability: 'relaxed' });
    const done = changes.done;
    done.catch(() => {});
    let result: T;
    try {
      result = await change(changes);
    } catch (error) {
      // Of a request that failed: the transaction has the reason why, such as a lack of room.
      abort(changes);
      await done.catch(() => {});
      throw changes.error ?? error;
    }
    await done;
    return result;
  }

  async close(): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    (await connection?.catch(() => undefined))?.close();
  }

  #forget(connection: Promise<unknown> | undefined): void {
    if (this.#connection === connection) this.#connection = undefined;
  }

  async #connect(): Promise<IDBPDatabase<Schema>> {
    if (globalThis.indexedDB === undefined)
      throw new ConnectorError('no-indexeddb', 'IndexedDB page store: this platform has no IndexedDB; take another store');
    try {
      return await openDB<Schema>(this.#name, 1, {
        upgrade(database) {
          database.createObjectStore('pages');
          database.createObjectStore('notes').createIndex('usedAt', 'usedAt');
          database.createObjectStore('totals');
        },
        blocking: () => void this.close(),
        terminated: () => this.#forget(this.#connection),
      });
    } catch (cause) {
      throw new ConnectorError(
        'no-indexeddb',
        `IndexedDB page store: the browser does not open the database ${JSON.stringify(this.#name)}: ${(cause as Error)?.message}; take another name, or another store`,
        { cause },
      );
    }
  }
}

/** The bytes that all pages take up. Counted anew where the total is none. */
export async function usedBytesOf(changes: PageChanges): Promise<number> {
  const total: unknown = await changes.objectStore('totals').get('usedBytes');
  if (typeof total === 'number' && total >= 0 && Number.isSafeInteger(total)) return total;
  let bytes = 0;
  for await (const { value } of changes.objectStore('notes')) bytes += value.bytes;
  return bytes;
}

export async function setUsedBytes(changes: PageChanges, bytes: number): Promise<void> {
  await changes.objectStore('totals').put(bytes, 'usedBytes');
}

/** Has the next change count anew. */
export async function forgetUsedBytes(changes: PageChanges): Promise<void> {
  await changes.objectStore('totals').delete('usedBytes');
}

/** Removes a page. @returns the bytes that it took up, 0 where it was not there */
export async function removePage(changes: PageChanges, key: string): Promise<number> {
  const note = await changes.objectStore('notes').get(key);
  if (note === undefined) return 0;
  await changes.objectStore('notes').delete(key);
  await changes.objectStore('pages').delete(key);
  return note.bytes;
}

/** Removes the least recently used pages until no more than so many bytes are used. @returns the bytes that are used then */
export async function evictTo(changes: PageChanges, usedBytes: number, maxBytes: number): Promise<number> {
  let used = usedBytes;
  if (used <= maxBytes) return used;
  for await (const cursor of changes.objectStore('notes').index('usedAt')) {
    used -= cursor.value.bytes;
    await changes.objectStore('pages').delete(cursor.primaryKey);
    await cursor.delete();
    if (used <= maxBytes) break;
  }
  return Math.max(0, used);
}

function abort(changes: PageChanges): void {
  try {
    changes.abort();
  } catch {
    // It is over.
  }
}

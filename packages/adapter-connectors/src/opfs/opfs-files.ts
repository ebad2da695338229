/**
 * What of the origin private file system is used, as dedicated workers have it. TypeScript's `lib.dom` leaves the synchronous part out,
 * and `lib.webworker` cannot be loaded beside it.
 */
export interface OpfsDirectory {
  getDirectoryHandle(name: string, options?: { create?: boolean }): Promise<OpfsDirectory>;
  getFileHandle(name: string, options?: { create?: boolean }): Promise<OpfsFile>;
  removeEntry(name: string): Promise<void>;
  keys(): AsyncIterableIterator<string>;
}

/** As `FileSystemFileHandle`. */
export interface OpfsFile {
  createSyncAccessHandle?(): Promise<OpfsHandle>;
}

/** As `FileSystemSyncAccessHandle`. */
export interface OpfsHandle {
  getSize(): number;
  /** @returns bytes that were read, fewer at the end of the file */
  read(into: Uint8Array, options: { at: number }): number;
  /** @returns bytes that were written, which some browsers have fewer than they were given when there is no room */
  write(bytes: Uint8Array, options: { at: number }): number;
  truncate(size: number): void;
  flush(): void;
  close(): void;
}

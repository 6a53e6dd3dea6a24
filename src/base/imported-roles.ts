/** Roles that imports of university data give (university/settle). They are known before a user has them. */
export const IMPORTED_ROLES = ['student', 'teacher'] as const;
export type ImportedRole = (typeof IMPORTED_ROLES)[number];

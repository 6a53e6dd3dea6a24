-- How a session began: who comes through the identity provider needs no password of ours.
ALTER TABLE sessions ADD COLUMN via text NOT NULL DEFAULT 'password' CHECK (via IN ('password', 'idp'));
UPDATE sessions SET via = 'idp' WHERE kind = 'admin' AND password_at IS NULL;

-- Failures count by the account as the database finds it, and by the caller: an address, an IPv6 network or a known browser.
DELETE FROM login_failures;
ALTER TABLE login_failures RENAME COLUMN address TO caller;
ALTER INDEX login_failures_address RENAME TO login_failures_caller;
-- An attempt is written down before the password is compared.
ALTER TABLE login_failures ADD COLUMN pending boolean NOT NULL DEFAULT true;

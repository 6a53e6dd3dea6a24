-- Pages of plugins and the administration share an origin: which plugins' pages an administrator trusts, and which sessions
-- belong to a browser.

-- Whether answers of triggers that can run script go out without the sandbox.
ALTER TABLE plugins ADD COLUMN html_trusted boolean NOT NULL DEFAULT false;

-- A session of a browser counts only together with a proof of one of our own pages. Nothing is known of older sessions.
ALTER TABLE sessions ADD COLUMN browser boolean NOT NULL DEFAULT true;
ALTER TABLE sessions ALTER COLUMN browser DROP DEFAULT;

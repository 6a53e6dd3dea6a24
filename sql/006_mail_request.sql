-- Which request for a temporary password a mail belongs to: a job of an earlier request has nothing to say any more.
ALTER TABLE admin_credentials ADD COLUMN mail_request uuid;
